import Base
import Crypto
import Rules

/// The second factors of the project: the sign-ins that they finish, and their enrolment.
public struct ProjectFactors: Sendable {
    public let signIns: SecondFactorSignIns
    public let enrollments: SecondFactorEnrollments

    init(
        _ resources: Resources, _ masterKey: MasterKey, _ pipeline: SignInPipeline, codes: VerificationCodes,
        delivery: OobDelivery, mailer: Mailer, projectID: Text
    ) {
        let secrets = FactorSecrets(masterKey: masterKey, random: resources.random)
        signIns = SecondFactorSignIns(
            resources: resources, users: pipeline.users, guesses: pipeline.guesses, codes: codes,
            pendingSignIns: pipeline.pendingSignIns, secrets: secrets)
        enrollments = SecondFactorEnrollments(
            resources: resources, users: pipeline.users, tokenCheck: pipeline.tokenCheck, codes: codes,
            pendingSignIns: pipeline.pendingSignIns, secrets: secrets, delivery: delivery, mailer: mailer,
            devices: pipeline.guesses.devices, keys: pipeline.guesses.keys, repeatedChanges: pipeline.repeatedChanges,
            projectID: projectID)
    }
}
