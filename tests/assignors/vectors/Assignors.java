/*
 * Writes assignors.json: small groups, and what Apache Kafka's own assignors give to each member.
 *
 * A topic is a letter, and "a0" its first partition. "owned" is what Kafka's sticky assignor gave
 * the member before the group changed; a few members missed that and claim something older.
 *
 * To run it, put kafka-clients (4.3.1 was used) and slf4j-api on a class path:
 *
 *     java --class-path kafka-clients-4.3.1.jar:slf4j-api-1.7.36.jar \
 *         Assignors.java > assignors.json
 */

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;

import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.AbstractPartitionAssignor;
import org.apache.kafka.common.TopicPartition;

public class Assignors {
    private static final int CASES = 200;
    private static final int GENERATION = 7;
    private static final Random DIE = new Random(20);
    private static final Comparator<TopicPartition> IN_ORDER =
        Comparator.comparing(TopicPartition::topic).thenComparing(TopicPartition::partition);

    record Member(
        String id, String instance, String topics, List<TopicPartition> owned, int generation) {

        Member owning(List<TopicPartition> partitions, int since) {
            return new Member(id, instance, topics, partitions, since);
        }

        byte[] userData() {
            StickyAssignor assignor = new StickyAssignor();
            if (generation >= 0)
                assignor.onAssignment(new Assignment(owned),
                    new ConsumerGroupMetadata("g", generation, id, Optional.empty()));
            ByteBuffer data = assignor.subscriptionUserData(Set.of());
            if (data == null)
                return null;
            byte[] bytes = new byte[data.remaining()];
            data.get(bytes);
            return bytes;
        }

        Subscription subscription() {
            byte[] data = userData();
            Subscription made = new Subscription(
                topics.chars().mapToObj(Character::toString).toList(),
                data == null ? null : ByteBuffer.wrap(data), owned, generation, Optional.empty());
            made.setGroupInstanceId(Optional.ofNullable(instance));
            return made;
        }

        String json() {
            String json = String.format("{\"id\": \"%s\", \"topics\": \"%s\"", id, topics);
            if (instance != null)
                json += String.format(", \"instance\": \"%s\"", instance);
            if (generation >= 0)
                json += String.format(
                    ", \"owned\": \"%s\", \"generation\": %d, \"user_data\": \"%s\"",
                    names(owned), generation, HexFormat.of().formatHex(userData()));
            return json + "}";
        }
    }

    public static void main(String[] arguments) {
        List<String> lines = new ArrayList<>();
        for (int number = 0; number < CASES; number++)
            lines.add(drawCase());
        System.out.println("[\n" + String.join(",\n", lines) + "\n]");
    }

    private static String drawCase() {
        boolean isEqual = DIE.nextBoolean();
        Map<String, Integer> partitions = drawPartitions();
        List<Member> before = drawMembers(partitions, isEqual);
        Map<String, List<TopicPartition>> given = assign(new StickyAssignor(), partitions, before);
        List<Member> members = new ArrayList<>();
        for (Member member : before)
            members.add(owner(member, given.get(member.id)));
        change(members, partitions);
        Collections.shuffle(members, DIE);
        List<String> results = new ArrayList<>();
        for (AbstractPartitionAssignor each : List.of(new RangeAssignor(), new RoundRobinAssignor(),
                new StickyAssignor(), new CooperativeStickyAssignor()))
            results.add(String.format(
                "\"%s\": %s", each.name(), json(assign(each, partitions, members))));
        String counts = partitions.entrySet().stream()
            .map(each -> String.format("\"%s\": %d", each.getKey(), each.getValue()))
            .collect(Collectors.joining(", "));
        String joined = members.stream().map(Member::json).collect(Collectors.joining(",\n  "));
        return String.format(" {\"partitions\": {%s}, \"members\": [\n  %s],\n  %s}",
            counts, joined, String.join(",\n  ", results));
    }

    private static Map<String, Integer> drawPartitions() {
        Map<String, Integer> drawn = new TreeMap<>();
        for (String topic : "abcde".substring(0, 1 + DIE.nextInt(5)).split(""))
            drawn.put(topic, 1 + DIE.nextInt(7));
        return drawn;
    }

    private static List<Member> drawMembers(Map<String, Integer> partitions, boolean isEqual) {
        List<Member> members = new ArrayList<>();
        int count = 1 + DIE.nextInt(7);
        boolean hasStatic = DIE.nextInt(3) == 0;
        for (int number = 0; number < count; number++) {
            String instance = hasStatic && DIE.nextInt(3) > 0 ? "i" + (9 - number) : null;
            String topics = isEqual ? all(partitions) : some(partitions);
            members.add(new Member(drawId(), instance, topics, List.of(), -1));
        }
        return members;
    }

    private static String drawId() {
        return String.format("%05x", DIE.nextInt(1 << 20));
    }

    private static String all(Map<String, Integer> partitions) {
        return String.join("", partitions.keySet());
    }

    /** Perhaps none, and perhaps one that the cluster does not know. */
    private static String some(Map<String, Integer> partitions) {
        String known = partitions.keySet().stream()
            .filter(topic -> DIE.nextInt(5) < 3).collect(Collectors.joining());
        return known + (DIE.nextInt(12) == 0 ? "x" : "");
    }

    private static Member owner(Member member, List<TopicPartition> given) {
        return switch (DIE.nextInt(12)) {
            case 0 -> member;
            case 1 -> member.owning(given.subList(0, given.size() / 2), GENERATION - 1);
            default -> member.owning(given, GENERATION);
        };
    }

    /** What happens to a group between two generations: one change, or two at once, or none. */
    private static void change(List<Member> members, Map<String, Integer> partitions) {
        for (int times = DIE.nextInt(3); times > 0; times--) {
            Member any = members.get(DIE.nextInt(members.size()));
            switch (DIE.nextInt(5)) {
                case 0 -> {
                    if (members.size() > 1)
                        members.remove(any);
                }
                case 1 -> members.add(new Member(
                    drawId(), null, any.topics, List.of(), -1));
                case 2 -> partitions.merge("a", 1 + DIE.nextInt(3), Integer::sum);
                case 3 -> partitions.remove("c");
                default -> members.set(members.indexOf(any), new Member(
                    any.id, any.instance, some(partitions), any.owned, any.generation));
            }
        }
    }

    private static Map<String, List<TopicPartition>> assign(
            AbstractPartitionAssignor assignor, Map<String, Integer> partitions,
            List<Member> members) {
        Map<String, Subscription> subscriptions = new TreeMap<>();
        for (Member member : members)
            subscriptions.put(member.id, member.subscription());
        // Kafka's clients request metadata only for subscribed topics.
        Map<String, Integer> known = new TreeMap<>(partitions);
        known.keySet().removeIf(
            topic -> members.stream().noneMatch(member -> member.topics.contains(topic)));
        Map<String, List<TopicPartition>> assignment = assignor.assign(known, subscriptions);
        assignment.values().forEach(each -> each.sort(IN_ORDER));
        return assignment;
    }

    private static String json(Map<String, List<TopicPartition>> assignment) {
        return new TreeMap<>(assignment).entrySet().stream()
            .map(each -> String.format("\"%s\": \"%s\"", each.getKey(), names(each.getValue())))
            .collect(Collectors.joining(", ", "{", "}"));
    }

    private static String names(List<TopicPartition> partitions) {
        return partitions.stream().map(each -> each.topic() + each.partition())
            .collect(Collectors.joining(" "));
    }
}
