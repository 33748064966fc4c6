import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Scanner;
import java.util.UUID;
import java.util.function.Function;
import org.apache.kafka.common.serialization.*;

/** Kafka's own serializers: a line "kind value,value,…" (each in hex of its UTF-8 text, ~ for null) gives the hex of each, and of the list. */
public class SerializerOracle {
    record Kind(Serializer<?> serializer, Function<String, Object> parse) {}

    static final Map<String, Kind> KINDS = Map.of(
        "String", new Kind(new StringSerializer(), text -> text),
        "Short", new Kind(new ShortSerializer(), Short::valueOf),
        "Integer", new Kind(new IntegerSerializer(), Integer::valueOf),
        "Long", new Kind(new LongSerializer(), Long::valueOf),
        "Float", new Kind(new FloatSerializer(), Float::valueOf),
        "Double", new Kind(new DoubleSerializer(), Double::valueOf),
        "Boolean", new Kind(new BooleanSerializer(), text -> Boolean.valueOf(text.toLowerCase())),
        "UUID", new Kind(new UUIDSerializer(), UUID::fromString));

    @SuppressWarnings("unchecked")
    public static void main(String[] arguments) {
        Scanner lines = new Scanner(System.in, StandardCharsets.UTF_8);
        while (lines.hasNextLine()) {
            String[] line = lines.nextLine().split(" ");
            Kind kind = KINDS.get(line[0]);
            Serializer<Object> serializer = (Serializer<Object>) kind.serializer();
            List<Object> values = new ArrayList<>();
            StringBuilder answer = new StringBuilder();
            for (String each : line[1].split(",")) {
                Object value = each.equals("~") ? null
                    : kind.parse().apply(new String(HexFormat.of().parseHex(each), StandardCharsets.UTF_8));
                values.add(value);
                answer.append(hex(serializer.serialize("t", value))).append(' ');
            }
            System.out.println(answer.append(hex(new ListSerializer<>(serializer).serialize("t", values))));
        }
    }

    static String hex(byte[] bytes) {
        return bytes == null ? "~" : "x" + HexFormat.of().formatHex(bytes);
    }
}
