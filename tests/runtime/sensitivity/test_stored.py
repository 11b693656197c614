"""The file of sensitivities."""

import pytest

from runtime.errors import DecdecError
from runtime.sensitivity.stored import FILE, write_sensitivities


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / FILE.parent).write_text("no folder")
    with pytest.raises(DecdecError, match=r"Writing sensitivity\.safetensors failed"):
        write_sensitivities(tmp_path, [], "a")
