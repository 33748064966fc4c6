// Decides with Apache Kafka's StandardAuthorizer; see test_authorizer_oracle.py. Reads lines of fields separated by tabs:
//
//     acl TYPE NAME PATTERN PRINCIPAL HOST OPERATION PERMISSION    one of the ACLs of the next world
//     world ALLOW_EVERYONE                                         begins to decide by the ACLs since the last world
//     one PRINCIPAL HOST OPERATION TYPE NAME                       prints whether the operation on the resource is allowed
//     any PRINCIPAL HOST OPERATION TYPE                            prints whether it is on any resource of the type

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.SecurityUtils;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

public class AuthorizerOracle {
    static final int FETCH = 1;

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        PrintStream out = new PrintStream(System.out, true, "UTF-8");
        Map<Uuid, StandardAcl> acls = new HashMap<>();
        StandardAuthorizer authorizer = null;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] field = line.split("\t", -1);
            switch (field[0]) {
                case "acl" -> acls.put(Uuid.randomUuid(), acl(field));
                case "world" -> {
                    authorizer = new StandardAuthorizer();
                    authorizer.withPluginMetrics(new PluginMetricsImpl(new Metrics(), Map.of()));
                    authorizer.configure(Map.of("super.users", "User:super", "allow.everyone.if.no.acl.found", field[1]));
                    authorizer.loadSnapshot(acls);
                    authorizer.completeInitialLoad();
                    acls = new HashMap<>();
                }
                case "one" -> out.println(is(authorizer.authorize(new Client(field[1], field[2]), List.of(action(field))).get(0)));
                case "any" -> out.println(is(authorizer.authorizeByResourceType(
                    new Client(field[1], field[2]), AclOperation.valueOf(field[3]), ResourceType.valueOf(field[4]))));
                default -> throw new IllegalArgumentException(line);
            }
        }
    }

    static boolean is(AuthorizationResult result) {
        return result == AuthorizationResult.ALLOWED;
    }

    static StandardAcl acl(String[] field) {
        return new StandardAcl(ResourceType.valueOf(field[1]), field[2], PatternType.valueOf(field[3]), field[4], field[5],
            AclOperation.valueOf(field[6]), AclPermissionType.valueOf(field[7]));
    }

    static Action action(String[] field) {
        ResourcePattern resource = new ResourcePattern(ResourceType.valueOf(field[4]), field[5], PatternType.LITERAL);
        return new Action(AclOperation.valueOf(field[3]), resource, 1, true, true);
    }

    record Client(String name, String host) implements AuthorizableRequestContext {
        public String listenerName() {
            return "PLAINTEXT";
        }

        public SecurityProtocol securityProtocol() {
            return SecurityProtocol.PLAINTEXT;
        }

        public KafkaPrincipal principal() {
            return SecurityUtils.parseKafkaPrincipal(name);
        }

        public InetAddress clientAddress() {
            try {
                return InetAddress.getByName(host);
            } catch (java.net.UnknownHostException impossible) {
                throw new IllegalArgumentException(impossible);
            }
        }

        public int requestType() {
            return FETCH;
        }

        public int requestVersion() {
            return 0;
        }

        public String clientId() {
            return "client";
        }

        public int correlationId() {
            return 0;
        }
    }
}
