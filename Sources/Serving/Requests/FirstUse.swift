// One-time initialisation that is done before a player would wait for it.
import HostNames
import Lookahead
import Model
import Reactor
import Routing
import Store
import Upstream
import URISyntax

/// Triggers lookups that the Swift runtime and libcrypto do once, at first use.
///
/// For the first table keyed by a type, the runtime searches the whole program for the type's
/// `Hashable` conformance, which takes 0.1 ms and more. The first player would wait for a dozen of
/// these.
enum FirstUse {
    /// The key types of tables that requests use, listed so that the compiler cannot resolve their
    /// conformances statically.
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

    /// Makes the runtime find and cache these conformances; takes some milliseconds.
    static func lookForConformances() {
        for type in types {
            precondition(type is any Hashable.Type, "\(type) is in no table")
        }
    }
}

extension ProxyCore {
    /// Does one-time initialisation before the first players arrive; never blocks.
    ///
    /// Runs on the look-ahead thread, which is idle without players.
    package func prepareForPlayers() {
        aheadThread.handle.enqueue { _ in
            // libcrypto searches all its algorithms for its SHA-256.
            _ = ObjectKey(sha256Of: "")
            FirstUse.lookForConformances()
            // The first cookie with a domain would wait for the Public Suffix List.
            _ = PublicSuffix.contains("example")
        }
    }
}
