import Base
import Messages
import PosternAdmin
import PosternClient
import TestSupport
import Testing

/// The methods about many users, called for `AdminMethodsTests`.
enum UserMethods {
    static func call(_ admin: TenantAdmin, _ recorder: MethodRecorder) async throws {
        try await recorder.callVerifyHashSpec(of: admin)
        let carl = try await admin.createUser(uid: "carl", phoneNumber: "+14155550199")
        let count = try await recorder.expect("Users/Count") { try await admin.countUsers() }
        #expect(count == 2)
        let byPhone = try await recorder.expect("Users/GetByPhone") {
            try await admin.getUserByPhoneNumber("+14155550199")
        }
        let byProvider = try await recorder.expect("Users/GetByProvider") {
            try await admin.getUserByProvider("phone", rawID: "+14155550199")
        }
        #expect(byPhone == carl && byProvider == carl)
        let nobody = UserName(name: .uid("nobody"))
        let names = [UserName(name: .uid("carl")), UserName(name: .phoneNumber("+14155550199")), nobody]
        let batch = try await recorder.expect("Users/BatchGet") { try await admin.getUsers(names) }
        #expect(batch.users == [carl] && batch.notFound == [nobody] && batch.notRead.isEmpty)
        let found = try await recorder.expect("Users/Query") {
            try await admin.queryUsers(UserConditions(phoneNumberPrefix: "+1415", disabled: false)).all()
        }
        #expect(found == [carl])
        let exported = try await recorder.expect("Users/Export") {
            var rows: [ImportUser] = []
            for try await message in try await admin.exportUsers() { rows += message.users }
            return rows
        }
        #expect(exported.map(\.uid).contains("carl") && exported.count == 2)
        let deleted = try await recorder.expect("Users/BatchDelete") {
            try await admin.deleteUsers(["carl", "nobody"], force: true)
        }
        #expect(deleted.deletedCount == 1 && deleted.rejections.map(\.reason) == ["USER_NOT_FOUND"])
    }
}
