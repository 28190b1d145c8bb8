import Base
import Messages
import Rules
import TestSupport
import Testing

/// Which second factors a way back to a former email takes away.
@Suite struct WaysBackTests {
    private let changedAt = Timestamp(seconds: 1_800_000_000)

    private func user(_ factors: [(id: Text, difference: Duration)]) -> Account {
        account(email: "a@b.c") { user in
            user.secondFactors = factors.map { id, difference in
                SecondFactor(factorID: id, kind: .totp, enrolledAtMicros: (changedAt + difference).microseconds)
            }
            user.recoveryCodeCount = 10
        }
    }

    private var code: StoredOobCode {
        StoredOobCode(requestType: .recoverEmail, email: "a@b.c", createdAtMicros: changedAt.microseconds)
    }

    @Test func `The factors that there were when the email changed stay, whatever the clocks said`() {
        let way = code.asWayBack(to: user([("old", .seconds(3))]), place: 2)
        #expect(way.recoveryPlace == 2 && way.emailVerified)
        var changed = user([("old", .seconds(3)), ("new", .seconds(-3))])
        changed.takeBack(after: .takesOver(way))
        #expect(changed.user.secondFactors.map(\.factorID) == ["old"])
        #expect(changed.user.recoveryCodeCount == 0)
    }

    @Test func `Where there were none, all go`() {
        var changed = user([("new", .seconds(-3_600))])
        changed.takeBack(after: .takesOver(code.asWayBack(to: user([]), place: 1)))
        #expect(changed.user.secondFactors.isEmpty)
    }

    @Test func `If an admin set the email, whoever proves it gets in, and the codes to former emails stay`() {
        let way = code.asWayBack(to: user([]), place: 1)
        let ways = WaysBack([way])
        let types: [OobRequestType] = [
            .verifyEmail, .passwordReset, .verifyAndChangeEmail, .recoverEmail, .rejectEmail,
            .revertSecondFactorAddition,
        ]
        func voided(_ proof: ProofOfUnprovedEmail) -> [OobRequestType] {
            types.filter { proof.voids(StoredOobCode(requestType: $0, email: "other@b.c", recoveryPlace: 1)) }
        }
        let entering = ways.meaning(ofProving: "new@b.c", isSetByAdmin: true)
        #expect(voided(entering) == [.verifyEmail, .passwordReset, .verifyAndChangeEmail, .rejectEmail])
        var changed = user([("new", .seconds(1))])
        changed.takeBack(after: entering)
        #expect(changed == user([("new", .seconds(1))]))
        #expect(voided(ways.meaning(ofProving: "new@b.c", isSetByAdmin: false)).isEmpty)
        #expect(ways.meaning(ofProving: "A@b.c", isSetByAdmin: true).voids(way))
        #expect(voided(WaysBack([]).meaning(ofProving: "new@b.c", isSetByAdmin: true)) == types)
    }

    @Test func `For the code of an older server the times decide`() {
        var changed = user([("old", .seconds(-11)), ("doubtful", .seconds(-9)), ("new", .seconds(1))])
        changed.takeBack(after: .takesOver(code))
        #expect(changed.user.secondFactors.map(\.factorID) == ["old"])
    }
}
