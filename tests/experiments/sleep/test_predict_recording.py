"""cida predict reads a recording through its entry point."""

from importlib.metadata import entry_points

from cida.experiments.sleep.predict_recording import predict_recording


def test_cida_predict_finds_who_reads_recordings_by_an_entry_point():
    (reader,) = entry_points(group="cida.readers", name="edf")
    assert reader.load() is predict_recording
