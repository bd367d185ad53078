from hypothesis import settings

# time per example says nothing on a machine that does other things besides
settings.register_profile("fcer", deadline=None, max_examples=50)
settings.load_profile("fcer")
