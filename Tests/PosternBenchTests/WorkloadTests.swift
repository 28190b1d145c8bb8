import Base
import Messages
import Testing
import Wire

@testable import PosternBench

@Suite struct WorkloadTests {
    private func population(sessions: Int) -> Population {
        var population = Population(tenantID: "acme")
        population.userCount = 1_000
        population.passwordUserCount = 10
        population.sessions = (0..<sessions).map {
            Session(idToken: [UInt8]("id-\($0)".utf8), refreshToken: [UInt8]("refresh-\($0)".utf8))
        }
        return population
    }

    private func workload(_ mix: String, sessions: Int = 4, tokensMax: Int = .max, driver: Int = 0) throws -> Workload {
        let population = population(sessions: sessions)
        return Workload(
            mix: try Mix(parsing: mix), population: population, sessions: population.sessions,
            providerTokens: (0..<sessions).map { Secret("provider-\($0)") }, tokensMax: tokensMax, driver: driver,
            run: 7, seed: 1)
    }

    private func next(_ workload: inout Workload, stream: UInt32 = 1) throws -> (SentRequest, LoadRequest) {
        var buffer = ByteBuffer()
        let request = workload.appendRequest(stream: stream, to: &buffer)
        return (try SentRequest(reading: buffer.copyBytes()), request)
    }

    @Test func `A read asks for one of the seeded users`() throws {
        var workload = try workload("get=1")
        let known = Set((0..<1_000).map { UserName.uid($0) })
        var asked: Set<Text> = []
        for number in UInt32(0)..<500 {
            let (sent, _) = try next(&workload, stream: number * 2 + 1)
            #expect(sent.stream == number * 2 + 1)
            #expect((sent.service, sent.method) == ("postern.v1.Users", "Get"))
            let request = try UsersGetRequest(decoding: sent.payload)
            #expect(request.tenantID == "acme")
            asked.insert(request.uid)
        }
        #expect(asked.isSubset(of: known) && asked.count > 300)
    }

    @Test(arguments: Operation.inMixes)
    func `Every operation's request is one its method reads`(operation: PosternBench.Operation) throws {
        var workload = try workload("\(operation.name)=1")
        let (sent, _) = try next(&workload)
        #expect((sent.service, sent.method) == (operation.service.string, operation.method.string))
        switch operation {
        case .get: #expect(try UsersGetRequest(decoding: sent.payload).uid.byteCount == 28)
        case .getByEmail:
            #expect(try UsersGetByEmailRequest(decoding: sent.payload).email.string.hasSuffix("@bench.example"))
        case .lookup: #expect(try AccountsLookupRequest(decoding: sent.payload).idToken.string.hasPrefix("id-"))
        case .verify: #expect(try TokensVerifyIdTokenRequest(decoding: sent.payload).idToken.string.hasPrefix("id-"))
        case .refresh: #expect(try TokensRefreshRequest(decoding: sent.payload).attemptID.count == 16)
        case .signIn:
            #expect(
                try AccountsSignInWithPasswordRequest(decoding: sent.payload).password
                    == Secret(UserName.password.bytes))
        case .create: #expect(try UsersCreateRequest(decoding: sent.payload).password.isEmpty)
        case .signUp:
            #expect(try AccountsSignUpRequest(decoding: sent.payload).password == Secret(UserName.password.bytes))
        case .idp:
            let credential = try AccountsSignInWithIdpRequest(decoding: sent.payload).credential
            #expect(credential?.providerID == "oidc.bench")
            #expect(credential?.credential == .providerIDToken(Secret("provider-1")))
        case .signOut: Issue.record("a mix has no sign-out")
        case .health: #expect(try GRPCHealthCheckRequest(decoding: sent.payload).service.isEmpty)
        }
    }

    @Test func `New users never share an email, whichever driver makes them`() throws {
        var emails: Set<Text> = []
        for driver in 0..<3 {
            var workload = try workload("create=1,sign-up=1", driver: driver)
            for _ in 0..<100 {
                let (sent, _) = try next(&workload)
                emails.insert(
                    sent.method == "Create"
                        ? try UsersCreateRequest(decoding: sent.payload).email
                        : try AccountsSignUpRequest(decoding: sent.payload).email)
            }
        }
        #expect(emails.count == 300)
        // A thousand new users a second for a day: a driver does not come to the numbers of the next one.
        #expect(Workload.freshNumbersMax > 86_400 * 1_000)
        // The numbers of a hundred drivers, without the placeholder.
        #expect(99 * Workload.freshNumbersMax < FrameTemplate.placeholder - Workload.freshNumbersMax + 2)
    }

    @Test func `Tokens are verified in turn, and no more of them than asked for`() throws {
        var workload = try workload("verify=1", sessions: 5, tokensMax: 3)
        let tokens = try (0..<6).map { _ in try TokensVerifyIdTokenRequest(decoding: next(&workload).0.payload).idToken
        }
        #expect(Set(tokens) == ["id-0", "id-1", "id-2"])
        #expect(tokens[..<3] == tokens[3...])
    }

    @Test func `A session is refreshed once at a time, and next with the token it was given`() throws {
        var workload = try workload("refresh=1", sessions: 2)
        let (first, firstRequest) = try next(&workload)
        let (second, secondRequest) = try next(&workload)
        #expect(try TokensRefreshRequest(decoding: first.payload).refreshToken == "refresh-0")
        #expect(try TokensRefreshRequest(decoding: second.payload).refreshToken == "refresh-1")

        let answer = TokensRefreshResponse(uid: "u", tokens: TokenPair(idToken: "id-new", refreshToken: "refresh-new"))
            .encoded()
        let isTaken = answer.withUnsafeBytes { workload.answered(secondRequest, $0) }
        #expect(isTaken)
        #expect(
            workload.sessions[1] == Session(idToken: [UInt8]("id-new".utf8), refreshToken: [UInt8]("refresh-new".utf8)))
        let (third, _) = try next(&workload)
        #expect(try TokensRefreshRequest(decoding: third.payload).refreshToken == "refresh-new")

        workload.failed(firstRequest)
        let (fourth, _) = try next(&workload)
        #expect(try TokensRefreshRequest(decoding: fourth.payload).refreshToken == "refresh-0")
    }

    @Test func `An empty answer is not what any operation gives`() throws {
        var workload = try workload("get=1")
        let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
        let taken = (
            workload.answered(LoadRequest(operation: .get), nothing),
            workload.answered(LoadRequest(operation: .refresh, context: 0), nothing)
        )
        #expect(taken == (false, false))
    }
}
