"""Offset commits: manual and automatic, with metadata and leader epoch."""

import pytest

from tests.contract.clients.client_library import (
    ClientLibrary,
    CommittedOffset,
    RequestRejected,
    TopicAndPartition,
)
from tests.contract.cluster import Cluster
from tests.contract.expected_results import needs
from tests.contract.member_crowd import crowd_of


def test_the_next_member_continues_from_the_committed_offset(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        tp = TopicAndPartition(crowd.topic, 0)
        crowd.fill(5)
        first = crowd.join()
        crowd.read(5)
        assert first.committed(tp) is None
        first.commit()
        found = first.committed(tp)
        assert found is not None
        assert found.offset == 5
        crowd.fill(3)
        crowd.read(8)
        crowd.leave(first)
        crowd.consumed.clear()

        second = crowd.join()

        assert crowd.read(3) == [(tp, offset) for offset in (5, 6, 7)]
        assert second.position(tp) == 8


def test_auto_commit_commits_consumed_records_periodically(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        tp = TopicAndPartition(crowd.topic, 0)
        crowd.fill(4)
        crowd.join(auto_commit=True)

        crowd.read(4)

        crowd.wait(
            lambda: cluster.committed(crowd.group).get(tp, CommittedOffset(offset=0)).offset == 4,
            "a commit by itself",
        )


def test_auto_commit_commits_consumed_records_on_close(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        tp = TopicAndPartition(crowd.topic, 0)
        crowd.fill(4)
        member = crowd.join(auto_commit=True)
        crowd.read(4)

        crowd.leave(member)

        assert cluster.committed(crowd.group)[tp].offset == 4


def test_offsets_are_committed_manually(cluster: Cluster, library: ClientLibrary) -> None:
    with crowd_of(cluster, library, 2) as crowd:
        first, second = sorted(crowd.tps)
        member = crowd.join()
        crowd.settle()

        member.commit({first: CommittedOffset(offset=7)})
        member.commit({first: CommittedOffset(offset=3), second: CommittedOffset(offset=11)})

        found = cluster.committed(crowd.group)
        assert {tp: committed.offset for tp, committed in found.items()} == {
            first: 3,
            second: 11,
        }


@needs("metadata-written")
def test_metadata_is_stored_with_an_offset(cluster: Cluster, library: ClientLibrary) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        tp = TopicAndPartition(crowd.topic, 0)
        member = crowd.join()
        crowd.settle()

        member.commit({tp: CommittedOffset(offset=1, metadata="von Hand, ☃")})

        assert cluster.committed(crowd.group)[tp].metadata == "von Hand, ☃"


@needs("metadata-read")
def test_metadata_is_returned_with_the_committed_offset(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        tp = TopicAndPartition(crowd.topic, 0)
        cluster.commit(crowd.group, {tp: CommittedOffset(offset=1, metadata="note")})

        member = crowd.join()
        crowd.settle()

        assert member.committed(tp) == CommittedOffset(offset=1, metadata="note")


@needs("leader-epochs")
def test_the_leader_epoch_is_stored_with_an_offset(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        tp = TopicAndPartition(crowd.topic, 0)
        member = crowd.join()
        # Until its position is known, Java's consumer may answer a later committed() call with the
        # offset that it fetched for that position.
        crowd.fill(1)
        crowd.read(1)

        member.commit({tp: CommittedOffset(offset=1, leader_epoch=0)})

        assert cluster.committed(crowd.group)[tp].leader_epoch == 0
        found = member.committed(tp)
        assert found is not None
        assert found.leader_epoch == 0


def test_metadata_that_is_too_long_is_refused(cluster: Cluster, library: ClientLibrary) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        tp = TopicAndPartition(crowd.topic, 0)
        member = crowd.join()
        crowd.settle()

        with pytest.raises(RequestRejected) as refused:
            member.commit({tp: CommittedOffset(offset=1, metadata="x" * 5000)})

        assert refused.value.name == "OFFSET_METADATA_TOO_LARGE"
        assert cluster.committed(crowd.group) == {}


def test_a_consumer_with_manual_assignment_commits(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 2) as crowd:
        first, _ = sorted(crowd.tps)
        crowd.fill(3)
        member = crowd.join(topics=())
        member.assign(first)
        crowd.read(3)

        member.commit()

        assert cluster.committed(crowd.group)[first].offset == 3
        found = cluster.describe(crowd.group)
        assert (found.group_state, found.protocol_type, found.members) == ("Empty", "", ())


def test_a_consumer_with_manual_assignment_continues_from_its_commit(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        tp = TopicAndPartition(crowd.topic, 0)
        crowd.fill(5)
        cluster.commit(crowd.group, {tp: CommittedOffset(offset=3)})

        crowd.join(topics=()).assign(tp)

        assert crowd.read(2) == [(tp, 3), (tp, 4)]


def test_a_commit_from_outside_a_group_with_members_is_refused(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        tp = TopicAndPartition(crowd.topic, 0)
        crowd.join()
        crowd.settle()
        stranger = crowd.join_apart(topics=())
        stranger.assign(tp)

        with pytest.raises(RequestRejected) as refused:
            stranger.commit({tp: CommittedOffset(offset=1)})

        assert refused.value.name == "UNKNOWN_MEMBER_ID"
        assert cluster.committed(crowd.group) == {}
