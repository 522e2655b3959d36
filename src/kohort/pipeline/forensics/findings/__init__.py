"""Named patterns in the history of a group, each with its evidence and what to change.

One file for each. To add one: a file with a `Finding`, its name in the list below, and a guilty
history beside an innocent one in the tests.
"""

from functools import reduce
from typing import Final

from pyspark.sql import DataFrame

from kohort.pipeline.forensics.findings.crash_loop import CRASH_LOOP
from kohort.pipeline.forensics.findings.deploy_in_a_row import DEPLOY_IN_A_ROW
from kohort.pipeline.forensics.findings.eager_cost import EAGER_COST
from kohort.pipeline.forensics.findings.expired_offsets import EXPIRED_OFFSETS
from kohort.pipeline.forensics.findings.finding import Evidence, Finding, look
from kohort.pipeline.forensics.findings.leader_loop import LEADER_LOOP
from kohort.pipeline.forensics.findings.offset_rewinds import OFFSET_REWINDS
from kohort.pipeline.forensics.findings.poll_interval import POLL_INTERVAL
from kohort.pipeline.forensics.findings.rebalance_storm import STORM
from kohort.pipeline.forensics.findings.session_timeout import SESSION_TIMEOUT
from kohort.pipeline.forensics.findings.slow_member import SLOW_MEMBER
from kohort.pipeline.forensics.findings.stuck_group import STUCK_GROUP
from kohort.pipeline.forensics.findings.subscription_mismatch import SUBSCRIPTION_MISMATCH
from kohort.pipeline.forensics.findings.too_many_members import TOO_MANY_MEMBERS
from kohort.pipeline.forensics.findings.unowned_topic import UNOWNED_TOPIC
from kohort.pipeline.forensics.findings.zombie_commits import ZOMBIE_COMMITS

FINDINGS: Final = (
    STORM,
    SLOW_MEMBER,
    POLL_INTERVAL,
    SESSION_TIMEOUT,
    CRASH_LOOP,
    DEPLOY_IN_A_ROW,
    LEADER_LOOP,
    EAGER_COST,
    SUBSCRIPTION_MISMATCH,
    UNOWNED_TOPIC,
    ZOMBIE_COMMITS,
    OFFSET_REWINDS,
    EXPIRED_OFFSETS,
    TOO_MANY_MEMBERS,
    STUCK_GROUP,
)


def build(evidence: Evidence) -> DataFrame:
    """All that is found, of every kind."""
    return reduce(DataFrame.unionByName, (look(finding, evidence) for finding in FINDINGS))


__all__ = ["FINDINGS", "Evidence", "Finding", "build", "look"]
