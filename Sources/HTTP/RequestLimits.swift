/// The limits of a request head and of the framing of its content.
///
/// | limit | unit | default | range | over it |
/// |---|---|---|---|---|
/// | `requestLine` | bytes without CRLF | 16384 | 256 to 1 MiB | 414 |
/// | `head` | bytes with the empty line | 65536 | 512 to 4 MiB | 431 |
/// | `fieldCount` | field lines | 100 | 1 to 10000 | 431 |
/// | `chunkExtensions` | bytes over the whole content | 16384 | 0 to 1 MiB | 400 |
/// | `trailers` | bytes over the whole content | 16384 | 0 to 1 MiB | 431 |
package struct RequestLimits: Sendable, Hashable {
    /// Higher than in most servers, since a handle contains a whole URL.
    package let requestLine: Int
    package let head: Int
    package let fieldCount: Int
    /// Extensions are ignored; without a limit a sender could hide endless bytes in them.
    package let chunkExtensions: Int
    package let trailers: Int

    /// Creates limits; each is clamped to its range.
    package init(
        requestLine: Int = 16384, head: Int = 65536, fieldCount: Int = 100,
        chunkExtensions: Int = 16384, trailers: Int = 16384
    ) {
        self.requestLine = min(max(requestLine, 256), 1 << 20)
        self.head = min(max(head, 512), 4 << 20)
        self.fieldCount = min(max(fieldCount, 1), 10000)
        self.chunkExtensions = min(max(chunkExtensions, 0), 1 << 20)
        self.trailers = min(max(trailers, 0), 1 << 20)
    }
}
