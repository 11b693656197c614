from app.clipboard import SAFE_BYTES, copied


def test_the_limit_is_told_only_beyond_it():
    assert copied("a" * 1200) == "Sent 1 200 characters to the terminal's clipboard."
    fits = SAFE_BYTES // 4 * 3
    assert "Some terminals" not in copied("a" * fits)
    assert "Some terminals take at most 75.0 kB at once; /export writes a file." in copied("a" * (fits + 3))
    assert "Some terminals" in copied("東" * (fits // 3 + 1))
