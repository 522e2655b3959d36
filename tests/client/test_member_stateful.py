"""Stateful test of a member with brokers that send arbitrary responses at any time, or none.

The member must keep its invariants, and must join once the brokers behave.
"""

from collections.abc import Mapping

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kohort.assignors import COOPERATIVE_STICKY, RANGE
from kohort.client.member import effects, member_events
from kohort.client.member.effects import AssignmentChange, MemberEffect
from kohort.client.member.leader_assignment import write_assignment
from kohort.client.member.member import Member, MemberSettings, MemberState
from kohort.client.member.member_events import (
    CallId,
    MemberEvent,
    OffsetAndMetadata,
    RequestFailure,
    RequestId,
)
from kohort.client.rebalances import ConsumerRebalanceResult
from kohort.types import (
    BrokerId,
    ErrorCode,
    Generation,
    GroupId,
    InstanceId,
    MemberId,
    Millis,
    Offset,
    Partition,
    Topic,
    TopicPartition,
)
from kohort.wire.api import (
    k08_offset_commit,
    k09_offset_fetch,
    k10_find_coordinator,
    k11_join_group,
    k12_heartbeat,
    k14_sync_group,
)
from tests.client.coordinator_bridge import commit_response, error_response
from tests.client.trace_syntax import subscription

TOPICS = ("t1", "t2", "t3")
SPACE = [TopicPartition(Topic(t), Partition(n)) for t in TOPICS for n in range(2)]

topics = st.frozensets(st.sampled_from([Topic(each) for each in TOPICS]), max_size=2)
partitions = st.frozensets(st.sampled_from(SPACE), max_size=4)
positions = st.dictionaries(
    st.sampled_from(SPACE),
    st.integers(-1, 9).map(lambda n: OffsetAndMetadata(offset=Offset(n))),
    max_size=3,
)
errors = st.sampled_from(
    [
        *ErrorCode,
        # Codes with special handling, so that they are drawn often enough.
        *[ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION] * 10,
        *[ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.NOT_COORDINATOR] * 10,
        *[ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.FENCED_INSTANCE_ID] * 5,
        *[ErrorCode.MEMBER_ID_REQUIRED] * 5,
    ]
)
member_ids = st.sampled_from([MemberId(each) for each in ("", "m1", "m2")])
metadata = st.sampled_from(
    [b"", b"?", subscription("t1"), subscription("t1,t2+t1:0,1@3"), subscription("-")]
)
lies = st.builds(
    k11_join_group.JoinGroupResponse,
    error_code=st.just(0),
    generation_id=st.integers(-1, 3),
    protocol_type=st.sampled_from([None, "consumer", "consumer", "connect"]),
    protocol_name=st.sampled_from([None, "range", "cooperative-sticky", "none"]),
    leader=member_ids,
    skip_assignment=st.booleans(),
    member_id=member_ids,
    members=st.lists(
        st.builds(
            k11_join_group.JoinGroupResponseMember,
            member_id=member_ids,
            group_instance_id=st.none(),
            metadata=metadata,
        ),
        max_size=3,
    ).map(tuple),
)
assignments = st.one_of(st.sampled_from([b"", b"?"]), partitions.map(write_assignment))

Body = object


def correct_response(body: Body, topic_names: frozenset[Topic]) -> object:
    """The response of a correct coordinator to its only member."""
    match body:
        case k10_find_coordinator.FindCoordinatorRequest():
            named = k10_find_coordinator.Coordinator(
                key=body.coordinator_keys[0], node_id=BrokerId(1), host="b1", port=1, error_code=0
            )
            return k10_find_coordinator.FindCoordinatorResponse(coordinators=(named,))
        case k11_join_group.JoinGroupRequest():
            (first, *_) = body.protocols
            return k11_join_group.JoinGroupResponse(
                error_code=0,
                generation_id=Generation(77),
                protocol_type="consumer",
                protocol_name=first.name,
                leader=MemberId("boss"),
                member_id=body.member_id or MemberId("correct_response"),
            )
        case k14_sync_group.SyncGroupRequest():
            given = [at for at in SPACE if at.topic in topic_names]
            return k14_sync_group.SyncGroupResponse(
                error_code=0, assignment=write_assignment(given)
            )
        case _:
            return error_response(body, ErrorCode.NONE)


class MemberMachine(RuleBasedStateMachine):
    @initialize(
        is_cooperative=st.booleans(), is_static=st.booleans(), enable_auto_commit=st.booleans()
    )
    def begin(self, *, is_cooperative: bool, is_static: bool, enable_auto_commit: bool) -> None:
        self.settings = MemberSettings(
            group_id=GroupId("g"),
            assignors=(COOPERATIVE_STICKY,) if is_cooperative else (RANGE, COOPERATIVE_STICKY),
            instance_id=InstanceId("i") if is_static else None,
            enable_auto_commit=enable_auto_commit,
        )
        self.member = Member(self.settings, lambda: 0.5)
        self.now = Millis(0)
        self.topics: frozenset[Topic] | None = None
        self.open: dict[RequestId, Body] = {}
        self.closed: dict[RequestId, Body] = {}
        self.attempt: RequestId | None = None
        self.call: effects.CallListener | None = None
        self.must_tell = False
        self.questions: dict[CallId, bool] = {}
        self.asked = 0
        self.owned: frozenset[TopicPartition] = frozenset()
        self.generation = (Generation(-1), MemberId(""))
        self.gone: set[tuple[Generation, MemberId]] = set()
        self.is_ended = False

    # The member and its invariants

    def feed(self, event: MemberEvent) -> None:
        before = self.generation
        if isinstance(event, member_events.CallbackReturned) and self.call is not None:
            if self.call.change is not AssignmentChange.ASSIGNED:
                self.owned -= self.call.partitions
            self.call = None
        said = self.member.handle(event, self.now)
        self.generation = (self.member.generation, self.member.member_id)
        for effect in said:
            self._check(effect, event, is_new=self.generation != before)
        if self.generation != before:
            self.gone.add(before)
            self.gone.discard(self.generation)
        if self.member.state not in (MemberState.JOINING, MemberState.SYNCING):
            self.attempt = None
        assert self.member.owned == self.owned, "owned partitions change only through calls"

    def _check(self, effect: MemberEffect, event: MemberEvent, *, is_new: bool) -> None:
        assert not self.is_ended or isinstance(
            effect, effects.CommitCompleted | effects.CommittedFetched
        )
        match effect:
            case effects.SendRequest():
                self._check_send(effect, event, is_new=is_new)
            case effects.CallListener():
                assert self.call is None, "one call at a time"
                self.call = effect
                if effect.change is AssignmentChange.ASSIGNED:
                    assert not effect.partitions & self.owned
                    self.owned |= effect.partitions
                else:
                    assert effect.partitions
                    assert effect.partitions <= self.owned
            case effects.RequestPositions():
                assert self.settings.enable_auto_commit
                assert effect.revoking <= self.owned
                self.must_tell = True
            case effects.CommitCompleted() | effects.CommittedFetched():
                assert self.questions.pop(effect.call_id), "each call_id has one answer"
            case effects.RebalanceCompleted():
                told = effect.rebalance
                assert told.started_at <= told.ended_at == self.now
                spans = [told.join_ms, told.sync_ms, told.listener_ms, told.poll_wait_ms]
                assert min(spans) >= 0
                assert sum(spans) <= told.ended_at - told.started_at
                assert told.result is not ConsumerRebalanceResult.STABLE or told.generation >= 0
            case effects.MemberClosed():
                self.is_ended = True
            case _:
                pass

    def _check_send(self, send: effects.SendRequest, event: MemberEvent, *, is_new: bool) -> None:
        assert send.request_id not in self.open | self.closed
        self.open[send.request_id] = send.body
        match send.body:
            case k11_join_group.JoinGroupRequest() | k14_sync_group.SyncGroupRequest():
                request_id = getattr(event, "request_id", None)
                is_free = self.attempt is None or self.attempt == request_id or is_new
                assert is_free, "one join or sync at a time"
                self.attempt = send.request_id
            case k12_heartbeat.HeartbeatRequest():
                assert (send.body.generation_id, send.body.member_id) not in self.gone
            case k08_offset_commit.OffsetCommitRequest():
                identity = (send.body.generation_id_or_member_epoch, send.body.member_id)
                assert identity == (-1, "") or identity not in self.gone
            case _:
                pass

    @invariant()
    def it_will_be_woken_while_it_is_joined(self) -> None:
        resting = (MemberState.UNJOINED, MemberState.LEAVING, MemberState.ENDED)
        if self.member.generation >= 0 and self.member.state not in resting:
            is_joining = self.member.state in (MemberState.PREPARING, MemberState.JOINING)
            assert self.member.deadline() is not None or (is_joining and self.open)

    # Application

    @rule(wanted=topics)
    def subscribe(self, wanted: frozenset[Topic]) -> None:
        self.topics = wanted
        self.feed(member_events.Subscribed(topics=wanted))

    @rule()
    def unsubscribe(self) -> None:
        self.topics = None
        self.feed(member_events.Unsubscribed())

    @rule()
    def poll(self) -> None:
        self.feed(member_events.Polled())

    @precondition(lambda self: self.call is not None)
    @rule()
    def return_from_listener(self) -> None:
        self.feed(member_events.CallbackReturned())

    @precondition(lambda self: self.must_tell)
    @rule(told=positions)
    def tell_positions(self, told: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        self.must_tell = False
        moved = {at: each for at, each in told.items() if each.offset >= 0}
        self.feed(member_events.PositionsReported(positions=moved))

    @rule(told=positions)
    def commit(self, told: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        self.feed(member_events.CommitRequested(call_id=self._ask(), positions=told))

    @rule(asked=partitions)
    def ask_what_is_committed(self, asked: frozenset[TopicPartition]) -> None:
        self.feed(member_events.CommittedRequested(call_id=self._ask(), partitions=asked))

    def _ask(self) -> CallId:
        self.asked += 1
        self.questions[CallId(self.asked)] = True
        return CallId(self.asked)

    @precondition(lambda self: self.questions)
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        call_id = data.draw(st.sampled_from(sorted(self.questions)))
        del self.questions[call_id]
        self.feed(member_events.CallCancelled(call_id=call_id))

    @rule()
    def ask_to_rejoin(self) -> None:
        self.feed(member_events.RejoinRequested(reason="on a whim"))

    @rule(counts=st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 3)))
    def see(self, counts: Mapping[str, int]) -> None:
        seen = {Topic(topic): count for topic, count in counts.items()}
        self.feed(member_events.TopicsUpdated(partitions=seen))

    # Brokers

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def tell_the_truth(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.open)))
        self._answer(number, correct_response(self.open[number], self.topics or frozenset()))

    @precondition(lambda self: self.open)
    @rule(data=st.data(), error=errors, member_id=member_ids)
    def refuse(self, data: st.DataObject, error: ErrorCode, member_id: MemberId) -> None:
        number = data.draw(st.sampled_from(sorted(self.open)))
        self._answer(number, error_response(self.open[number], error, member_id))

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def lie(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.open)))
        body = self._lie(self.open[number], data)
        self._answer(number, body)

    def _lie(self, asked: Body, data: st.DataObject) -> object:
        match asked:
            case k11_join_group.JoinGroupRequest():
                return data.draw(lies)
            case k14_sync_group.SyncGroupRequest():
                assignment = data.draw(assignments)
                return k14_sync_group.SyncGroupResponse(error_code=0, assignment=assignment)
            case k08_offset_commit.OffsetCommitRequest():
                return commit_response(data.draw(st.dictionaries(st.sampled_from(SPACE), errors)))
            case k09_offset_fetch.OffsetFetchRequest():
                return k09_offset_fetch.OffsetFetchResponse(groups=())
            case k10_find_coordinator.FindCoordinatorRequest():
                return k10_find_coordinator.FindCoordinatorResponse(coordinators=())
            case _:
                return error_response(asked, 9_999)

    @precondition(lambda self: self.open)
    @rule(data=st.data(), failure=st.sampled_from(RequestFailure))
    def lose(self, data: st.DataObject, failure: RequestFailure) -> None:
        number = data.draw(st.sampled_from(sorted(self.open)))
        self.closed[number] = self.open.pop(number)
        self.feed(member_events.RequestFailed(request_id=number, failure=failure))

    @precondition(lambda self: self.closed)
    @rule(data=st.data())
    def say_it_again(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.closed)))
        body = correct_response(self.closed[number], self.topics or frozenset())
        self.feed(member_events.ResponseReceived(request_id=number, body=body))

    def _answer(self, number: RequestId, body: object) -> None:
        self.closed[number] = self.open.pop(number)
        self.feed(member_events.ResponseReceived(request_id=number, body=body))

    # Time

    @rule(span=st.sampled_from([1, 100, 1_000, 3_000, 45_000, 300_000]))
    def wait(self, span: int) -> None:
        until = Millis(self.now + span)
        while (due := self.member.deadline()) is not None and due <= until:
            self.now = max(self.now, due)
            self.feed(member_events.DeadlineReached())
            after = self.member.deadline()
            assert after is None or after > self.now, "it would never sleep again"
        self.now = until

    # End

    def teardown(self) -> None:
        """With correct responses the member joins the group and leaves it."""
        if not hasattr(self, "member"):
            return
        self._live_honestly()
        if self.topics is not None:
            assert self.member.state is MemberState.STABLE
            assert self.owned == {at for at in SPACE if at.topic in self.topics}
        self.feed(member_events.CloseRequested())
        self._live_honestly()
        assert self.is_ended
        assert not self.questions
        assert self.member.deadline() is None

    def _live_honestly(self) -> None:
        for _ in range(60):
            self.feed(member_events.Polled())
            if self.must_tell:
                self.must_tell = False
                self.feed(member_events.PositionsReported(positions={}))
            if self.call is not None:
                self.feed(member_events.CallbackReturned())
            self.feed(member_events.TopicsUpdated(partitions={Topic(topic): 2 for topic in TOPICS}))
            for number in sorted(self.open):
                self._answer(
                    number, correct_response(self.open[number], self.topics or frozenset())
                )
            self.wait(200)


TestMemberMachine = MemberMachine.TestCase
TestMemberMachine.settings = settings(stateful_step_count=60)
