/// Who may call what, as people decided it. `MethodTableTests` compares each row with what the method does, so that a
/// mistake of a rule in proto/ is found.
///
/// The row of a new method stands beside the method's tests, in an extension of this type. The rows below are those of
/// methods whose tests fill many files.
///
///     extension MethodTable {
///         static let usersCountSessions = Row.admins
///     }
///
/// `all`, which is generated, does not compile while a method has no row.
enum MethodTable {
    /// What a method answers to nobody, a verifier, an app, an admin of another tenant, an admin of this tenant, and a
    /// project-admin. "key": a credential is wanted. "role": a higher role. "tenant": the credential is another
    /// tenant's. "yes": the method runs.
    enum Row: String {
        case everybody = "yes yes yes yes yes yes"
        case anyCredential = "key yes yes yes yes yes"
        case verifiers = "key yes yes tenant yes yes"
        case apps = "key role yes tenant yes yes"
        case admins = "key role role tenant yes yes"
        /// The method is about no tenant, or finds out itself which one it is about.
        case adminsOfAnyTenant = "key role role yes yes yes"
        case projectAdmins = "key role role role role yes"
    }

    /// Methods that a second service has as well, by the name of the second.
    static let aliases = [
        "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": serverReflectionServerReflectionInfo
    ]

    static let healthCheck = Row.everybody
    static let healthWatch = Row.everybody
    static let serverReflectionServerReflectionInfo = Row.anyCredential

    static let hookConfigsGet = Row.admins
    static let hookConfigsUpdate = Row.admins
    static let emailConfigsGet = Row.admins
    static let emailConfigsUpdate = Row.admins
    static let emailConfigsTest = Row.admins
    static let emailConfigsPreviewTemplate = Row.admins
    static let smsConfigsGet = Row.admins
    static let smsConfigsUpdate = Row.admins

    static let outboxList = Row.admins
    static let outboxGet = Row.admins
    static let outboxRetry = Row.admins
    static let outboxDelete = Row.admins

    static let providersCreate = Row.admins
    static let providersGet = Row.admins
    static let providersList = Row.admins
    static let providersUpdate = Row.admins
    static let providersDelete = Row.admins
    static let providersRebind = Row.admins
    static let providersTest = Row.admins

    static let tenantsCreate = Row.projectAdmins
    static let tenantsGet = Row.admins
    static let tenantsGetUsage = Row.admins
    static let tenantsList = Row.projectAdmins
    static let tenantsUpdate = Row.admins
    static let tenantsUpdateMany = Row.projectAdmins
    static let tenantsCopySettings = Row.projectAdmins
    static let tenantsDelete = Row.projectAdmins
    static let tenantsListDenials = Row.admins
    static let tenantsListAllDenials = Row.projectAdmins
    static let tenantsWatchDenials = Row.admins

    static let auditListEvents = Row.admins
    static let auditWatchEvents = Row.admins
    static let auditListSettingsChanges = Row.admins
    static let auditSignCheckpoint = Row.admins
    static let auditGetKey = Row.anyCredential

    static let tokensVerifyIdToken = Row.verifiers
    static let tokensRefresh = Row.apps
    static let tokensCreateSessionCookie = Row.apps
    static let tokensVerifySessionCookie = Row.verifiers
    static let tokensWatchRevocations = Row.verifiers
    static let tokensListKeys = Row.anyCredential

    static let projectCreateApiKey = Row.adminsOfAnyTenant
    static let projectListApiKeys = Row.adminsOfAnyTenant
    static let projectUpdateApiKey = Row.adminsOfAnyTenant
    static let projectRotateApiKey = Row.adminsOfAnyTenant
    static let projectWhoAmI = Row.anyCredential
    static let projectTestPermissions = Row.anyCredential
    static let projectRevokeApiKey = Row.adminsOfAnyTenant
    static let projectCreateCertificateMapping = Row.projectAdmins
    static let projectListCertificateMappings = Row.projectAdmins
    static let projectDeleteCertificateMapping = Row.projectAdmins
    static let projectCreateServiceAccount = Row.projectAdmins
    static let projectGetServiceAccount = Row.projectAdmins
    static let projectListServiceAccounts = Row.projectAdmins
    static let projectUpdateServiceAccount = Row.projectAdmins
    static let projectDeleteServiceAccount = Row.projectAdmins
    static let projectCreateServiceAccountKey = Row.projectAdmins
    static let projectUploadServiceAccountKey = Row.projectAdmins
    static let projectListServiceAccountKeys = Row.projectAdmins
    static let projectRevokeServiceAccountKey = Row.projectAdmins
    static let projectListSigningKeys = Row.projectAdmins
    static let projectRotateSigningKey = Row.projectAdmins
    static let projectRevokeSigningKey = Row.projectAdmins
    static let projectServerInfo = Row.anyCredential
    static let projectStats = Row.projectAdmins
    static let projectGetClusterStatus = Row.projectAdmins
    static let projectDigestStore = Row.projectAdmins
    static let projectMakeSnapshot = Row.projectAdmins
    static let projectBackup = Row.projectAdmins

    static let sessionsList = Row.apps
    static let sessionsRevoke = Row.apps
    static let sessionsSignOut = Row.apps
    static let sessionsWatchAuthState = Row.apps

    static let accountsSignUp = Row.apps
    static let accountsSignInWithPassword = Row.apps
    static let accountsSignInWithIdp = Row.apps
    static let accountsUnlink = Row.apps
    static let accountsReauthenticate = Row.apps
    static let accountsSignInWithEmailLink = Row.apps
    static let accountsSendVerificationCode = Row.apps
    static let accountsSignInWithPhoneNumber = Row.apps
    static let accountsSendOobCode = Row.apps
    static let accountsCheckOobCode = Row.apps
    static let accountsApplyOobCode = Row.apps
    static let accountsResetPassword = Row.apps
    static let accountsCreateAuthUri = Row.apps
    static let accountsSignInWithCustomToken = Row.apps
    static let accountsLookup = Row.apps
    static let accountsUpdate = Row.apps
    static let accountsDelete = Row.apps
    static let accountsStartMfaEnrollment = Row.apps
    static let accountsFinalizeMfaEnrollment = Row.apps
    static let accountsWithdrawMfaEnrollment = Row.apps
    static let accountsRenewRecoveryCodes = Row.apps
    static let accountsStartMfaSignIn = Row.apps
    static let accountsFinalizeMfaSignIn = Row.apps

    static let usersCreate = Row.admins
    static let usersGet = Row.admins
    static let usersGetByEmail = Row.admins
    static let usersGetByPhone = Row.admins
    static let usersGetByProvider = Row.admins
    static let usersBatchGet = Row.admins
    static let usersCount = Row.admins
    static let usersQuery = Row.admins
    static let usersList = Row.admins
    static let usersUpdate = Row.admins
    static let usersUpdateMany = Row.admins
    static let usersSetCustomClaims = Row.admins
    static let usersBatchDelete = Row.admins
    static let usersDelete = Row.admins
    static let usersRevokeTokens = Row.admins
    static let usersListSessions = Row.admins
    static let usersRevokeSession = Row.admins
    static let usersGenerateOobLink = Row.admins
    static let usersLink = Row.admins
    static let usersExplainLink = Row.admins
    static let usersUnlink = Row.admins
    static let usersCreateCustomToken = Row.admins
    static let usersAddSecondFactor = Row.admins
    static let usersRemoveSecondFactor = Row.admins
    static let usersExport = Row.admins
    static let usersImport = Row.admins
    static let usersVerifyHashSpec = Row.admins
}
