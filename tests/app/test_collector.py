import gc

from app.collector import spare_the_program


def test_what_is_there_is_left_out_of_later_collections():
    try:
        spare_the_program()
        assert gc.get_freeze_count() > 1000
        assert len(gc.get_objects(generation=2)) < 1000
    finally:
        gc.unfreeze()
