import Base
import Identity
import Messages
import Store

/// postern.v1.Project/DigestStore
enum ProjectDigestStore: SlowMethod {
    static func handle(_ request: ProjectDigestStoreRequest, _ call: Call) async throws -> ProjectDigestStoreResponse {
        let digest = try await call.project.digests.compute(deadline: call.deadline)
        var response = ProjectDigestStoreResponse()
        if let place = digest.place {
            response.position = Int64(clamping: place.position)
            response.clusterID = Hex.encode(place.clusterID)
        }
        response.tables = digest.tables.map {
            TableDigest(table: $0.name, rows: Int64(clamping: $0.rowCount), sha256: $0.hash)
        }
        return response
    }
}
