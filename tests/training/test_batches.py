import os
import signal

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fcer.data.samples import Samples
from fcer.errors import ConfigError, FcerError
from fcer.training.batches import check_batch_size, draw_seed, epoch_batches, load
from fcer.training.distributed import World
from training_cases import FEATURES, FOLD


def views(dataset, augment=True) -> Samples:
    normalization = dataset.normalization(FOLD.train)
    fires = dataset.fires(FOLD.train)
    return Samples(fires, days=1, features=FEATURES, normalization=normalization, crop=32, augment=augment, seed=1)


@given(n=st.integers(1, 200), batch_size=st.integers(1, 50), size=st.integers(1, 4))
def test_batches_hold_every_sample_once_and_none_is_small(n, batch_size, size):
    order = np.random.default_rng(n).permutation(n).tolist()
    batches = epoch_batches(order, batch_size, size)
    assert [index for batch in batches for part in batch for index in part] == order
    sizes = [sum(map(len, batch)) for batch in batches]
    assert max(sizes) <= batch_size
    assert max(sizes) - min(sizes) <= 1
    assert len(batches) == -(-n // batch_size)
    for batch in batches:
        assert len(batch) == size
        assert max(map(len, batch)) - min(map(len, batch)) <= 1


@settings(deadline=None)
@given(st.lists(st.integers(1, 10_000), min_size=3, max_size=3, unique=True))
def test_seeds_differ_with_what_decides_them(three):
    assert len({draw_seed(*three), draw_seed(*reversed(three)), draw_seed(three[0], three[1])}) == 3
    assert draw_seed(*three, 0) == draw_seed(*three)
    torch.manual_seed(draw_seed(*three))  # and torch takes them


@pytest.mark.parametrize(
    ("samples", "batch_size", "crop", "size"),
    [(12, 1, 32, 1), (3, 2, 32, 1), (1, 8, 32, 1), (12, 1, 64, 2), (12, 2, 32, 2)],
)
def test_batches_too_small_for_batch_norm(samples, batch_size, crop, size):
    with pytest.raises(ConfigError, match=r"^batch_size: .* too few for batch norm .* --member-batch-size or --crop$"):
        check_batch_size(samples, batch_size, crop, World(size=size))


@pytest.mark.parametrize(
    ("samples", "batch_size", "crop", "size"), [(12, 2, 32, 1), (1, 1, 64, 1), (12, 2, 64, 2), (13, 8, 32, 2)]
)
def test_small_batches_that_do(samples, batch_size, crop, size):
    check_batch_size(samples, batch_size, crop, World(size=size))


@pytest.mark.parametrize("workers", [0, 1])
def test_a_batch_is_its_samples(tiny, workers):
    samples = views(tiny)
    samples.set_epoch(3)
    loaded = list(load(samples, [[4, 1], [0, 2, 3]], workers=workers))
    for batch, (x, y) in zip([[4, 1], [0, 2, 3]], loaded, strict=True):
        assert (x.dtype, y.dtype) == (torch.float32, torch.float32)
        assert np.array_equal(x, np.stack([samples[index].x for index in batch]))
        assert np.array_equal(y[:, 0], np.stack([samples[index].y for index in batch]))


@pytest.mark.parametrize("workers", [0, 1])
def test_each_epoch_has_views_of_its_own(tiny, workers):
    samples = views(tiny)
    drawn = []
    for epoch in (1, 2, 1):
        samples.set_epoch(epoch)
        drawn.append(torch.cat([x for x, _ in load(samples, [[0, 1, 2, 3]], workers=workers)]))
    assert torch.equal(drawn[0], drawn[2])
    assert not torch.equal(drawn[0], drawn[1])


@pytest.mark.parametrize("workers", [0, 1])
def test_reading_leaves_random_numbers_alone(tiny, workers):
    torch.manual_seed(5)
    before = torch.get_rng_state()
    list(load(views(tiny), [[0, 1]], workers=workers))
    assert torch.equal(torch.get_rng_state(), before)


def test_a_killed_reader_is_one_sentence(tiny, monkeypatch):
    monkeypatch.setattr(Samples, "raw", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(FcerError, match=r"reads samples was killed, .* same command again with fewer"):
        list(load(views(tiny), [[0, 1]], workers=1))


def test_other_failures_are_not_blamed_on_readers(tiny, monkeypatch):
    def fail(self, index):
        raise RuntimeError("a defect")

    monkeypatch.setattr(Samples, "raw", fail)
    with pytest.raises(RuntimeError, match="a defect"):
        list(load(views(tiny), [[0, 1]]))
