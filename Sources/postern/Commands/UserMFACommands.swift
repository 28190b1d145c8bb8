import Base
import JSON
import Messages
import PosternClient

/// postern user mfa …: the second factors of a user, as an admin sees them.
enum UserMFACommands {
    static let all = [list, addPhone, remove]

    static let list = Command(
        path: ["user", "mfa", "list"], methods: ["Users/Get"],
        summary: "Lists a user's second factors.", example: "-t acme user mfa list u1",
        operands: [.required("uid|email")], isReadOnly: true
    ) { session in
        let request = UsersGetRequest(
            tenantID: try session.tenantID(), uid: try await session.uid(named: session.arguments.operands[0]))
        let user = try await client(session).get(request, options: session.callOptions()).user
        session.output.print(user?.secondFactors ?? [])
    }

    static let addPhone = Command(
        path: ["user", "mfa", "add-phone"], methods: ["Users/AddSecondFactor"],
        summary: "Gives a user a phone number as second factor; it counts as verified.",
        example: "-t acme user mfa add-phone u1 +14155550123 --display-name work",
        operands: [.required("uid|email"), .required("phone-number")],
        flags: [Flag("display-name", "TEXT", "what the user calls the factor")], isValidatable: true
    ) { session in
        let operands = session.arguments.operands
        let request = UsersAddSecondFactorRequest(
            tenantID: try session.tenantID(), uid: try await session.uid(named: operands[0]),
            phoneNumber: Text(operands[1]),
            displayName: session.arguments.text("display-name") ?? .empty, validateOnly: session.isValidatingOnly)
        let response = try await client(session).addSecondFactor(request, options: session.callOptions())
        let added = response.user?.secondFactors.first { $0.factorID == response.factorID }
        session.output.print(added ?? SecondFactor())
    }

    static let remove: Command = Command(
        path: ["user", "mfa", "remove"], methods: ["Users/RemoveSecondFactor"],
        summary: "Removes a second factor, or all of them, and voids recovery codes that its holder may have made.",
        example: "-t acme user mfa remove u1 --all", operands: [.required("uid|email"), .optional("factor-id")],
        flags: [Flag("all", "every factor of the user")], isValidatable: true
    ) { session in
        let (name, factorID) = (session.arguments.operands[0], session.arguments.operand(1))
        let isAll = session.arguments.isSet("all")
        guard (factorID != nil) != isAll else {
            throw CommandError.usage("name the factor, or say --all", hint: "postern \(remove.example)")
        }
        let tenantID = try session.tenantID()
        let what = factorID.map { "second factor \($0)" } ?? "all second factors"
        try session.confirm(
            "Remove \(what) of user \(name)? Sessions that showed it end, and the user may then sign in without.")
        let request = UsersRemoveSecondFactorRequest(
            tenantID: tenantID, uid: try await session.uid(named: name), factorID: factorID.map { Text($0) } ?? .empty,
            all: isAll,
            validateOnly: session.isValidatingOnly)
        let user = try await client(session).removeSecondFactor(request, options: session.callOptions()).user
        session.output.print(user?.secondFactors ?? [])
    }

    private static func client(_ session: Session) throws -> UsersClient {
        UsersClient(channel: try session.channel())
    }
}

extension SecondFactor: Record {
    static let columns = ["factor_id", "kind", "display_name", "phone_number", "enrolled_at_micros"]

    var id: String { factorID.string }
}
