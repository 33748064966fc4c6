// Apache Kafka's AclAuthorizer as a broker in ZooKeeper mode has it; see test_shared_acls.py.
//
//     AclPeer ZOOKEEPER
//
// Reads lines of fields separated by tabs, and answers each with a line:
//
//     create TYPE NAME PATTERN PRINCIPAL HOST OPERATION PERMISSION    "done", or what went wrong
//     delete TYPE NAME PATTERN                                        how many ACLs of the pattern were deleted
//     list                                                            all ACLs, sorted, separated by semicolons

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import kafka.security.authorizer.AclAuthorizer;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;

public class AclPeer {
    public static void main(String[] arguments) throws Exception {
        AclAuthorizer authorizer = new AclAuthorizer();
        authorizer.configure(Map.of("zookeeper.connect", arguments[0]));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        PrintStream out = new PrintStream(System.out, true, "UTF-8");
        out.println("ready");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(answer(authorizer, line.split("\t", -1)));
        }
        authorizer.close();
    }

    static String answer(AclAuthorizer authorizer, String[] field) throws Exception {
        switch (field[0]) {
            case "create":
                AccessControlEntry entry = new AccessControlEntry(
                    field[4], field[5], AclOperation.valueOf(field[6]), AclPermissionType.valueOf(field[7]));
                var created = authorizer.createAcls(null, List.of(new AclBinding(pattern(field), entry)));
                return created.get(0).toCompletableFuture().get().exception().map(Throwable::toString).orElse("done");
            case "delete":
                var filter = new AclBindingFilter(pattern(field).toFilter(), AccessControlEntryFilter.ANY);
                var deleted = authorizer.deleteAcls(null, List.of(filter));
                return "" + deleted.get(0).toCompletableFuture().get().aclBindingDeleteResults().size();
            case "list":
                TreeSet<String> acls = new TreeSet<>();
                authorizer.acls(AclBindingFilter.ANY).forEach(acl -> acls.add(acl.toString()));
                return String.join(";", acls);
            default:
                throw new IllegalArgumentException(field[0]);
        }
    }

    static ResourcePattern pattern(String[] field) {
        return new ResourcePattern(ResourceType.valueOf(field[1]), field[2], PatternType.valueOf(field[3]));
    }
}
