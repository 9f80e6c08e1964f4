"""One step of a program, in every layout, against a plain sum of products."""

import numpy as np
import pytest

from dpbn.inference.contraction import BATCH, Contraction


@pytest.mark.parametrize("width", [1, 2, 50])
@pytest.mark.parametrize(
    ("shared", "left", "summed", "right", "mode"),
    [
        (2, 2, 2, 2, "multiply and sum"),
        (3, 16, 17, 18, "matrix product"),
        (1, 30, 20, 10, "matrix product"),
        (3, 1, 400, 5, "multiply and sum"),
    ],
)
def test_a_batch_is_contracted_as_each_of_it_alone(width, shared, left, summed, right, mode):
    sizes = {0: shared, 1: left, 2: summed, 3: right, BATCH: width}
    generator = np.random.default_rng(0)
    a, b = generator.random((summed, left, shared, width)), generator.random((right, shared, summed, width))
    step = Contraction((2, 1, 0, BATCH), (3, 0, 2, BATCH), {0, 1, 3, BATCH}, sizes)
    assert step._mode == mode or width == 1
    assert step.scope[-1] == BATCH
    found = step(a, b)
    assert found.flags.c_contiguous
    axes = [step.scope.index(v) for v in (0, 1, 3, BATCH)]
    expected = np.einsum("kmsb,nskb->smnb", a, b)
    np.testing.assert_allclose(found.transpose(axes), expected, rtol=1e-12)
