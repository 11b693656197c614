import pytest
import torch

from kernels.dec import TableCodes, dequantise_table


def test_every_weight_is_its_rows_entry():
    table = torch.tensor([[float(i) for i in range(8)], [-float(i) for i in range(8)]])
    codes = torch.tensor([[0, 7, 3], [2, 2, 5]], dtype=torch.uint8)
    expected = torch.tensor([[0.0, 7.0, 3.0], [-2.0, -2.0, -5.0]])
    assert torch.equal(dequantise_table(TableCodes(3, codes, table)), expected)


@pytest.mark.parametrize(("bits", "entries"), [(2, 4), (3, 16), (4, 8)])
def test_tables_that_do_not_fit_are_refused(bits, entries):
    with pytest.raises(ValueError, match=r"bits|table"):
        TableCodes(bits, torch.zeros(2, 3, dtype=torch.uint8), torch.zeros(2, entries))
