/*
 * Writes records.json: record keys, record values and embedded consumer protocol data, each as
 * the bytes Apache Kafka's own classes produce and the fields those classes read back from them.
 *
 * To run it, put kafka-clients and kafka-group-coordinator (4.3.0 was used) on a class path:
 *
 *     java --class-path kafka-clients-4.3.0.jar:kafka-group-coordinator-4.3.0.jar \
 *         Vectors.java > records.json
 */

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Collectors;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ConsumerProtocolAssignment;
import org.apache.kafka.common.message.ConsumerProtocolSubscription;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.coordinator.group.generated.*;

public class Vectors {
    static final Uuid TOPIC_ID = new Uuid(0x0102030405060708L, 0x090a0b0c0d0e0f10L);
    static final Uuid OTHER_ID = new Uuid(-2L, Long.MAX_VALUE);
    static final String LONG = "x".repeat(200);
    static final List<String> LINES = new ArrayList<>();

    public static void main(String[] arguments) throws Exception {
        keys();
        offsetCommits();
        classicGroups();
        consumerGroups();
        members();
        assignments();
        subscriptions();
        embeddedAssignments();
        System.out.println("[\n" + String.join(",\n", LINES) + "\n]");
    }

    static void keys() throws Exception {
        key(new LegacyOffsetCommitKey().setGroup("group").setTopic("topic").setPartition(7));
        key(new OffsetCommitKey().setGroup("group").setTopic("topic").setPartition(7));
        key(new OffsetCommitKey()
            .setGroup("").setTopic("Gr\u00f6\u00dfe \ud83d\ude00").setPartition(-1));
        key(new GroupMetadataKey().setGroup("group"));
        key(new ConsumerGroupMetadataKey().setGroupId("group"));
        key(new ConsumerGroupPartitionMetadataKey().setGroupId("group"));
        key(new ConsumerGroupMemberMetadataKey().setGroupId("group").setMemberId("member"));
        key(new ConsumerGroupTargetAssignmentMetadataKey().setGroupId("group"));
        key(new ConsumerGroupTargetAssignmentMemberKey().setGroupId("group").setMemberId("member"));
        key(new ConsumerGroupCurrentMemberAssignmentKey()
            .setGroupId("group").setMemberId("member"));
        key(new ConsumerGroupRegularExpressionKey()
            .setGroupId("group").setRegularExpression("topic-.*"));
    }

    static void offsetCommits() throws Exception {
        value(new LegacyOffsetCommitValue()
            .setOffset(42).setMetadata("notes").setCommitTimestamp(1_700_000_000_000L));
        OffsetCommitValue full = new OffsetCommitValue()
            .setOffset(Long.MAX_VALUE)
            .setLeaderEpoch(5)
            .setMetadata("Gr\u00f6\u00dfe")
            .setCommitTimestamp(1_700_000_000_000L)
            .setExpireTimestamp(1_800_000_000_000L);
        everyVersion(new OffsetCommitValue());
        everyVersion(full);
        value((short) 4, full.duplicate().setTopicId(TOPIC_ID).setMetadata(LONG));
    }

    static void classicGroups() throws Exception {
        everyVersion(new GroupMetadataValue());
        everyVersion(new GroupMetadataValue().setProtocol(null).setLeader(null));
        GroupMetadataValue.MemberMetadata dynamic = new GroupMetadataValue.MemberMetadata()
            .setMemberId("member-1")
            .setClientId("client")
            .setClientHost("/10.0.0.1")
            .setRebalanceTimeout(300_000)
            .setSessionTimeout(45_000)
            .setSubscription(new byte[] {0, 3, 1})
            .setAssignment(new byte[0]);
        everyVersion(new GroupMetadataValue()
            .setProtocolType("consumer")
            .setGeneration(Integer.MAX_VALUE)
            .setProtocol("range")
            .setLeader("member-1")
            .setCurrentStateTimestamp(1_700_000_000_000L)
            .setMembers(Arrays.asList(
                dynamic,
                dynamic.duplicate().setMemberId("member-2").setGroupInstanceId("instance")
                    .setClientId(LONG).setAssignment(new byte[300]))));
    }

    static void consumerGroups() throws Exception {
        value(new ConsumerGroupMetadataValue());
        value(new ConsumerGroupMetadataValue().setEpoch(9).setMetadataHash(-3));
        value(new ConsumerGroupPartitionMetadataValue());
        value(new ConsumerGroupPartitionMetadataValue().setTopics(Arrays.asList(
            new ConsumerGroupPartitionMetadataValue.TopicMetadata()
                .setTopicId(TOPIC_ID).setTopicName("topic").setNumPartitions(2)
                .setPartitionMetadata(Arrays.asList(
                    new ConsumerGroupPartitionMetadataValue.PartitionMetadata()
                        .setPartition(0).setRacks(Arrays.asList("a", "b")),
                    new ConsumerGroupPartitionMetadataValue.PartitionMetadata().setPartition(1))),
            new ConsumerGroupPartitionMetadataValue.TopicMetadata())));
        value(new ConsumerGroupTargetAssignmentMetadataValue().setAssignmentEpoch(9));
        value(new ConsumerGroupTargetAssignmentMetadataValue()
            .setAssignmentEpoch(9).setAssignmentTimestamp(1_700_000_000_000L));
        value(new ConsumerGroupRegularExpressionValue());
        value(new ConsumerGroupRegularExpressionValue()
            .setTopics(Arrays.asList("topic-1", "topic-2")).setVersion(3).setTimestamp(-1));
    }

    static void members() throws Exception {
        ConsumerGroupMemberMetadataValue member = new ConsumerGroupMemberMetadataValue()
            .setInstanceId("instance")
            .setRackId("rack")
            .setClientId("client")
            .setClientHost("/10.0.0.1")
            .setSubscribedTopicNames(Arrays.asList("topic-1", "topic-2"))
            .setSubscribedTopicRegex("topic-.*")
            .setRebalanceTimeoutMs(300_000)
            .setServerAssignor("uniform");
        value(member);
        value(member.duplicate().setClassicMemberMetadata(null));
        value(member.duplicate()
            .setInstanceId(null).setRackId(null).setSubscribedTopicRegex(null)
            .setServerAssignor(null).setClassicMemberMetadata(null));
        ConsumerGroupMemberMetadataValue.ClassicMemberMetadata classic =
            new ConsumerGroupMemberMetadataValue.ClassicMemberMetadata()
                .setSessionTimeoutMs(45_000);
        value(member.duplicate().setClassicMemberMetadata(classic));
        ConsumerGroupMemberMetadataValue.ClassicProtocol range =
            new ConsumerGroupMemberMetadataValue.ClassicProtocol()
                .setName("range").setMetadata(new byte[] {0, 3});
        value(member.duplicate()
            .setClassicMemberMetadata(classic.duplicate().setSupportedProtocols(Arrays.asList(
                range, range.duplicate().setName(LONG).setMetadata(new byte[150])))));
        value(new ConsumerGroupMemberMetadataValue());
    }

    static void assignments() throws Exception {
        value(new ConsumerGroupTargetAssignmentMemberValue());
        value(new ConsumerGroupTargetAssignmentMemberValue().setTopicPartitions(Arrays.asList(
            new ConsumerGroupTargetAssignmentMemberValue.TopicPartition()
                .setTopicId(TOPIC_ID).setPartitions(Arrays.asList(0, 1, Integer.MAX_VALUE)),
            new ConsumerGroupTargetAssignmentMemberValue.TopicPartition().setTopicId(OTHER_ID))));
        value(new ConsumerGroupCurrentMemberAssignmentValue());
        ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions owned =
            new ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions()
                .setTopicId(TOPIC_ID).setPartitions(Arrays.asList(0, 1));
        value(new ConsumerGroupCurrentMemberAssignmentValue()
            .setMemberEpoch(10).setPreviousMemberEpoch(9).setState((byte) 2)
            .setAssignedPartitions(Arrays.asList(
                owned,
                owned.duplicate().setTopicId(OTHER_ID).setAssignmentEpochs(Arrays.asList(9, 10))))
            .setPartitionsPendingRevocation(Arrays.asList(
                owned.duplicate().setAssignmentEpochs(null))));
    }

    static void subscriptions() throws Exception {
        everyVersion(new ConsumerProtocolSubscription());
        ConsumerProtocolSubscription full = new ConsumerProtocolSubscription()
            .setTopics(Arrays.asList("topic-1", "Gr\u00f6\u00dfe"))
            .setUserData(ByteBuffer.wrap(new byte[] {1, 2, 3}))
            .setGenerationId(12)
            .setRackId("rack");
        full.ownedPartitions().add(new ConsumerProtocolSubscription.TopicPartition()
            .setTopic("topic-1").setPartitions(Arrays.asList(0, 2)));
        full.ownedPartitions().add(new ConsumerProtocolSubscription.TopicPartition()
            .setTopic("topic-2"));
        everyVersion(full);
    }

    static void embeddedAssignments() throws Exception {
        everyVersion(new ConsumerProtocolAssignment());
        ConsumerProtocolAssignment full = new ConsumerProtocolAssignment()
            .setUserData(ByteBuffer.wrap(new byte[0]));
        full.assignedPartitions().add(new ConsumerProtocolAssignment.TopicPartition()
            .setTopic("topic-1").setPartitions(Arrays.asList(0, 2)));
        full.assignedPartitions().add(new ConsumerProtocolAssignment.TopicPartition()
            .setTopic("topic-2"));
        everyVersion(full);
    }

    /* A key is stored behind the number of its record type. */
    static void key(ApiMessage key) throws Exception {
        byte[] bytes = MessageUtil.toCoordinatorTypePrefixedBytes(key);
        add(key, key.apiKey(), (short) 0, bytes);
    }

    static void value(Message value) throws Exception {
        value(value.highestSupportedVersion(), value);
    }

    static void everyVersion(Message value) throws Exception {
        for (short v = value.lowestSupportedVersion(); v <= value.highestSupportedVersion(); v++) {
            value(v, value);
        }
    }

    static void value(short version, Message value) throws Exception {
        add(value, version, version, MessageUtil.toVersionPrefixedBytes(version, value));
    }

    static void add(Message message, short prefix, short version, byte[] bytes) throws Exception {
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        if (buffer.getShort() != prefix) throw new AssertionError(message);
        Message read = message.getClass().getDeclaredConstructor().newInstance();
        read.read(new ByteBufferAccessor(buffer), version);
        if (buffer.hasRemaining()) throw new AssertionError(message);
        LINES.add(String.format("{\"name\": %s, \"version\": %d, \"hex\": %s,\n \"fields\": %s}",
            json(message.getClass().getSimpleName()), prefix,
            json(HexFormat.of().formatHex(bytes)), json(read)));
    }

    static String json(Object value) throws Exception {
        if (value == null || value instanceof Number) return String.valueOf(value);
        if (value instanceof String) return quote((String) value);
        if (value instanceof byte[]) return json(HexFormat.of().formatHex((byte[]) value));
        if (value instanceof ByteBuffer) {
            return json(MessageUtil.byteBufferToArray((ByteBuffer) value));
        }
        if (value instanceof Uuid) {
            Uuid id = (Uuid) value;
            return json(ByteBuffer.allocate(16).putLong(id.getMostSignificantBits())
                .putLong(id.getLeastSignificantBits()).array());
        }
        List<String> parts = new ArrayList<>();
        if (value instanceof Collection) {
            for (Object item : (Collection<?>) value) parts.add(json(item));
            return "[" + String.join(", ", parts) + "]";
        }
        for (Field field : value.getClass().getDeclaredFields()) {
            boolean isData = !Modifier.isStatic(field.getModifiers())
                && !List.of("_unknownTaggedFields", "next", "prev").contains(field.getName());
            if (!isData) continue;
            field.setAccessible(true);
            parts.add(quote(field.getName()) + ": " + json(field.get(value)));
        }
        return "{" + String.join(", ", parts) + "}";
    }

    static String quote(String text) {
        return text.chars()
            .mapToObj(c -> c < 32 || c > 126 || c == '"' || c == '\\'
                ? String.format("\\u%04x", c) : String.valueOf((char) c))
            .collect(Collectors.joining("", "\"", "\""));
    }
}
