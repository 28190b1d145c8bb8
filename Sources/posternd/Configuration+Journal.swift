import Base
import Cluster

extension Configuration {
    /// The address of the cluster's journal; nil for a server that is the only one.
    func journalAddress() throws -> JournalAddress? {
        guard !journal.isEmpty else { return nil }
        var password: (@Sendable () throws -> Secret)?
        if !journalPasswordFile.isEmpty {
            let read = { @Sendable [journalPasswordFile] () throws -> Secret in
                Secret(try SecretFile.read(journalPasswordFile, byteCountMax: 4_096))
            }
            // A file that cannot be used ends the start.
            _ = try read()
            password = read
        }
        do throws(JournalAddress.Problem) {
            var address = try JournalAddress(journal, schema: journalSchema, password: password)
            address.agreement = ClusterAgreement(
                projectID: projectID, issuer: effectiveIssuer, actionURL: effectiveActionURL)
            return address
        } catch {
            throw ConfigurationError(description: "journal: \(error)")
        }
    }
}
