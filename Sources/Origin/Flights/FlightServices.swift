package import Logging
package import Model
package import Store

/// What the upstream loop shares with the server loops.
///
/// A class, since each flight holds it.
package final class FlightServices: Sendable {
    /// What is known of origins and parents, and of the way to them.
    package struct Origins: Sendable {
        let health: OriginHealth
        let parents: ParentChoice
        let lines: LineSpeeds
        /// The resources that origins asked not to be requested again yet.
        let refusals: RefusalMemory
        /// The cookies that links bring and take along; nil unless this is a node of a cluster.
        let cookies: CarriedCookies?

        package init(
            health: OriginHealth, parents: ParentChoice, lines: LineSpeeds,
            refusals: RefusalMemory, cookies: CarriedCookies?
        ) {
            self.health = health
            self.parents = parents
            self.lines = lines
            self.refusals = refusals
            self.cookies = cookies
        }
    }

    /// What the loop reports to other threads, besides counters.
    package struct Reports: Sendable {
        let ahead: AheadGauge
        let concurrency: ConcurrencyReport
        /// Called on the upstream loop for each ahead fetch that ended before a player requested
        /// its resource.
        let aheadFetch: @Sendable (AheadFetch) -> Void

        package init(
            ahead: AheadGauge, concurrency: ConcurrencyReport,
            aheadFetch: @escaping @Sendable (AheadFetch) -> Void
        ) {
            self.ahead = ahead
            self.concurrency = concurrency
            self.aheadFetch = aheadFetch
        }
    }

    /// The object store that nodes share, and what they tell each other by it.
    package struct SecondLevel: Sendable {
        let settings: SharedStoreSettings
        /// What is known of it.
        let report: SharedStoreReport
        /// The orders of all nodes.
        let orders: NodeOrders
        /// The purges and pins of this node.
        let changes: NodeChanges

        package init(
            _ settings: SharedStoreSettings, report: SharedStoreReport, orders: NodeOrders,
            changes: NodeChanges
        ) {
            self.settings = settings
            self.report = report
            self.orders = orders
            self.changes = changes
        }
    }

    let store: ObjectStore
    let settings: ProxySettings
    let counters: Counters
    let readers: Readers
    let endless: EndlessBodies
    let isShared: Bool
    let keys: KeyTable
    let playlistMemory: PlaylistMemory
    let live: LiveMemory
    let texts: TextWorker
    let origins: Origins
    let reports: Reports
    /// Nil without one.
    let secondLevel: SecondLevel?
    let log: Logger

    package init(
        store: ObjectStore, settings: ProxySettings, counters: Counters, readers: Readers,
        endless: EndlessBodies, isShared: Bool, keys: KeyTable, playlistMemory: PlaylistMemory,
        live: LiveMemory, texts: TextWorker, origins: Origins, reports: Reports,
        secondLevel: SecondLevel?, log: Logger
    ) {
        self.store = store
        self.settings = settings
        self.counters = counters
        self.readers = readers
        self.endless = endless
        self.isShared = isShared
        self.keys = keys
        self.playlistMemory = playlistMemory
        self.live = live
        self.texts = texts
        self.origins = origins
        self.reports = reports
        self.secondLevel = secondLevel
        self.log = log
    }
}
