"""A few small synthetic fires, which most tests read."""

from fcer.data.synthetic.fires import Recipe

SMALL = Recipe(years=(2018, 2019), fires_per_year=2, image_size=(40, 56), fire_days=(7, 9), seed=3)
