/// What a resource is to the player, read off the place in the playlist that names it.
///
/// The role decides the lane a fetch takes, how long an answer is fresh and which file extension
/// the proxied URL shows. Its letter is the first path part of that URL.
package enum ResourceRole: UInt8, CaseIterable, Hashable, Sendable {
    /// A multivariant or media playlist.
    case playlist = 0x70
    /// A media segment.
    case segment = 0x73
    /// A media initialization section.
    case initialization = 0x69
    /// A decryption key.
    case key = 0x6B
    /// A partial segment.
    case part = 0x6C
    /// A segment of WebVTT.
    case subtitle = 0x76
    /// A steering manifest, an asset list or session data.
    case json = 0x6A
    /// An image of a thumbnail track.
    case image = 0x67
    /// Anything else: a whole media file, session data that is not JSON.
    case media = 0x66

    /// The role of a letter as it stands in a proxied URL.
    package init?(letter: UInt8) { self.init(rawValue: letter) }

    /// The letter of the role: p, s, i, k, l, v, j, g or f.
    package var letter: UInt8 { rawValue }

    /// Whether playback stands still until this small resource is there.
    package var isExpress: Bool {
        switch self {
        case .playlist, .initialization, .key, .json: true
        case .segment, .part, .subtitle, .image, .media: false
        }
    }
}
