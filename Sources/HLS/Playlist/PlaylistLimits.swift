/// The most that a playlist may cost before it is rejected as hostile or broken.
package struct PlaylistLimits: Hashable, Sendable {
    /// The longest playlist in bytes, decoded.
    ///
    /// Default 16 MiB; range 1 KiB to 1 GiB.
    package var byteCount: Int
    /// The longest line in bytes.
    ///
    /// Default 64 KiB; range 256 B to 1 MiB.
    package var lineLength: Int
    /// The most lines.
    ///
    /// Default 500,000, which is five days of 2 s segments; range 100 to 10 million.
    package var lineCount: Int
    /// The longest rewritten playlist in bytes.
    ///
    /// Needed because relative URIs become absolute. Default 128 MiB; range 1 KiB to 4 GiB.
    package var outputByteCount: Int
    /// The most bytes of all variables (EXT-X-DEFINE) together, names and values.
    ///
    /// Values may refer to variables defined earlier, so that a few lines could expand to
    /// gigabytes.
    package static let variableByteCount = 64 << 10

    package init(
        byteCount: Int = 16 << 20, lineLength: Int = 64 << 10, lineCount: Int = 500_000,
        outputByteCount: Int = 128 << 20
    ) {
        self.byteCount = byteCount
        self.lineLength = lineLength
        self.lineCount = lineCount
        self.outputByteCount = outputByteCount
    }

    package static let standard = PlaylistLimits()

    /// The limits of playlists that Sluice wrote itself, from any number of an origin's.
    ///
    /// A recording of a week is a few times longer than the longest playlist of an origin, and has
    /// absolute URIs in place of the origin's.
    package static let own = PlaylistLimits(
        byteCount: 128 << 20, lineLength: 1 << 20, lineCount: 10_000_000,
        outputByteCount: 512 << 20)
}
