// What a process does once for each of its types, done before anybody waits for it.
import HostNames
import Lookahead
import Model
import Reactor
import Routing
import Store
import Upstream
import URISyntax

/// What the Swift runtime and libcrypto look for once, at the first use.
///
/// The first table by a type has the runtime look for the type's `Hashable` conformance among all
/// that the program holds, which takes 0.1 ms and more. A first player met a dozen of them.
enum FirstUse {
    /// The types that tables go by on the way of a request, named so that nothing is known of their
    /// conformance when this is compiled.
    private static let types: [Any.Type] =
        [
            AbsoluteURL.self, AheadID.self, FetchID.self, Int.self, Int32.self,
            KeyTable.Question.self,
            ListID.self, MediaPiece.self, ObjectFacts.RewriteKey.self, ObjectIdentifier.self,
            ObjectKey.self, Origin.self, PlayerID.self, PlaylistMemory.Key.self, Readers.ID.self,
            SessionID.self,
            String.self, TrackKind.self, UInt16.self, UInt64.self, UInt128.self,
            UnsafeMutableRawPointer.self,
        ] + UpstreamClient.hashedTypes

    /// Has the runtime find and keep what it will be asked for; takes some milliseconds.
    static func lookForConformances() {
        for type in types {
            precondition(type is any Hashable.Type, "\(type) is in no table")
        }
    }

    /// Has libcrypto find its SHA-256, for which it goes through all its algorithms.
    static func lookForDigest() { _ = ObjectKey(sha256Of: "") }

    /// Reads the Public Suffix List, which the first cookie with a domain would wait for.
    static func readPublicSuffixes() { _ = PublicSuffix.contains("example") }
}

extension ProxyCore {
    /// Spares the first players what only first ones would wait for; never blocks.
    ///
    /// On the thread of what runs ahead of players, since there are none yet.
    package func prepareForPlayers() {
        aheadThread.handle.enqueue { _ in
            FirstUse.lookForDigest()
            FirstUse.lookForConformances()
            FirstUse.readPublicSuffixes()
        }
    }
}
