import Base
import Store
import Wire

/// The oldest state that a call may be answered from.
struct CallFreshness: Sendable {
    /// The position that a server told the caller. Nil: the caller named none.
    var position: JournalPosition?
    /// The caller wants the newest state.
    var isLatest = false

    /// INVALID_POSITION, INVALID_CONSISTENCY.
    init(_ metadata: Metadata, at node: JournalPosition) throws(Failure) {
        if let text = metadata.position {
            guard let position = JournalPosition(text) else { throw .malformedPosition }
            guard position.clusterID == node.clusterID else { throw .positionOfAnotherCluster }
            self.position = position
        }
        if let text = metadata.consistency {
            guard text.elementsEqual("latest".utf8) else { throw .unknownConsistency }
            isLatest = true
        }
    }

    /// Whether a node may not answer yet.
    func isBeyond(_ node: JournalPosition) -> Bool {
        isLatest || position.map { $0.number > node.number } ?? false
    }
}

extension Failure {
    fileprivate static let malformedPosition = Failure(
        .invalidPosition, "x-postern-position is not a position that a server told.")
    fileprivate static let positionOfAnotherCluster = Failure(
        .invalidPosition, "x-postern-position is of another cluster than this server's.")
    fileprivate static let unknownConsistency = Failure(
        .invalidConsistency, "x-postern-consistency can be \"latest\", or be left out.")
}
