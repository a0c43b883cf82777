import Lookahead
import SharedStore
import Testing

@testable import Model

/// How far look-ahead goes at origins without a setting of their own.
@Suite struct LookaheadModeTests {
    private func settings(_ mode: LookaheadMode) -> ProxySettings {
        var settings = ProxySettings()
        settings.lookAhead = mode
        return settings
    }

    @Test func `a mode other than auto holds for every list`() {
        var settings = settings(.seconds(12))
        settings.hostLimit = 1
        settings.clusterKeys = [ClusterKey(secret: Array(1...32))]
        #expect(settings.lookAhead(isLive: true, isPrivate: false) == .seconds(12))
        #expect(settings.lookAhead(isLive: false, isPrivate: false) == .seconds(12))
    }

    @Test func `auto leaves a line of one connection to the player`() {
        var settings = settings(.auto)
        #expect(settings.lookAhead(isLive: false, isPrivate: false) == .auto)
        settings.hostLimit = 1
        #expect(settings.lookAhead(isLive: false, isPrivate: false) == .off)
    }

    @Test func `auto fetches at a node of a cluster what the shared store keeps`() throws {
        var settings = settings(.auto)
        settings.clusterKeys = [ClusterKey(secret: Array(1...32))]
        #expect(settings.lookAhead(isLive: false, isPrivate: false) == .off)
        settings.sharedStore = SharedStoreSettings(
            try BucketLocation("s3://films/tier"), keys: AccessKeys(id: "a", secret: "b")
        ) { nil }
        #expect(settings.lookAhead(isLive: false, isPrivate: false) == .auto)
        #expect(settings.lookAhead(isLive: true, isPrivate: false) == .off)
        #expect(settings.lookAhead(isLive: false, isPrivate: true) == .off)
    }

    @Test func `headers of a session do not matter to a daemon that is alone`() {
        #expect(settings(.auto).lookAhead(isLive: false, isPrivate: true) == .auto)
    }
}
