"""Active-fire detections of VIIRS, as NASA FIRMS offers them, into fires in the dataset's layout.

`ingest` is the way in; `write_detections` goes the other way. A day that nobody could see is not in a fire's file, so
that its dates have a gap, which every reader of fires knows: no sample reads or is labelled across it.
"""

from fcer.data.detections.account import to_text, write_account
from fcer.data.detections.filters import DetectionSettings
from fcer.data.detections.ingest import Ingested, are_synthetic, ingest, sources_of
from fcer.data.detections.read import read_detections
from fcer.data.detections.write import IngestedFire

__all__ = [
    "DetectionSettings",
    "Ingested",
    "IngestedFire",
    "are_synthetic",
    "ingest",
    "read_detections",
    "sources_of",
    "to_text",
    "write_account",
]
