package import HLS
package import Retention

/// The retention kind of a resource's role, which decides what the store evicts first.
extension RetentionKind {
    /// The kind for a role; nil means an entry or a resource of a mount.
    package init(of role: ResourceRole?) {
        self =
            switch role {
            case .playlist, .initialization, .key, .json, .subtitle: .structure
            case .segment, .part, .image, .media: .media
            case nil: .other
            }
    }
}
