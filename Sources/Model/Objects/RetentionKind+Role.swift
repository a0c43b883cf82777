package import HLS
package import Retention

/// What a resource of some role is to its title, for what the store lets go first.
extension RetentionKind {
    /// The kind of a role; nil stands for an entry or a resource of a mount.
    package init(of role: ResourceRole?) {
        self =
            switch role {
            case .playlist, .initialization, .key, .json, .subtitle: .structure
            case .segment, .part, .image, .media: .media
            case nil: .other
            }
    }
}
