import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/** Reads lines of "class version hex" with Apache Kafka's generated classes; answers with the bytes they write and the values they saw. */
public class Oracle {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split(" ", -1);
            System.out.println(answer(parts[0], Short.parseShort(parts[1]), HexFormat.of().parseHex(parts[2])));
        }
    }

    static ObjectNode answer(String name, short version, byte[] bytes) throws Exception {
        Message message = (Message) Class.forName(name).getConstructor().newInstance();
        ByteBuffer in = ByteBuffer.wrap(bytes);
        ObjectNode answer = new ObjectMapper().createObjectNode();
        try {
            message.read(new ByteBufferAccessor(in), version);
        } catch (RuntimeException refused) {
            return answer.put("refused", refused.toString());
        }
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer out = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(out), cache, version);
        answer.put("left", in.remaining()).put("bytes", HexFormat.of().formatHex(out.array()));
        return answer.set("values", values(name, message, version));
    }

    static JsonNode values(String name, Message message, short version) throws Exception {
        for (Method method : Class.forName(name + "JsonConverter").getMethods()) {
            if (method.getName().equals("write") && method.getParameterCount() == 2) {
                return (JsonNode) method.invoke(null, message, version);
            }
        }
        throw new IllegalStateException(name);
    }
}
