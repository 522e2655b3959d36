"""Logs what the log layer has repaired, and what it cannot repair."""

from kohort.log.repair import Repair, RepairKind
from kohort.node import log_events


def report_repair(repair: Repair) -> None:
    path, reason = repair.path, repair.reason
    position, size = repair.position, repair.bytes_truncated
    match repair.kind:
        case RepairKind.TAIL_CUT:
            log_events.warning("tail-cut", path=path, position=position, bytes=size, reason=reason)
        case RepairKind.BATCH_DAMAGED:
            log_events.warning(
                "batch-damaged", path=path, position=position, bytes=size, reason=reason
            )
        case RepairKind.FILE_REPAIRED:
            log_events.warning("file-repaired", path=path, reason=reason)
        case RepairKind.DATA_LOSS_ACCEPTED:
            log_events.warning("data-loss-accepted", path=path, reason=reason)
        case RepairKind.PARTITION_REFUSED:
            log_events.warning("partition-refused", path=path, reason=reason)
