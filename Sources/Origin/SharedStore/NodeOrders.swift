package import DurableState
package import Model
import Numbers
package import Posix
package import SharedStore
import Synchronization

/// The thread-safe access to the orders of all nodes.
package final class NodeOrders: Sendable {
    /// Who carries out one kind of orders; the functions may be called on any thread and do not
    /// block.
    package struct Keeper: Sendable {
        /// Begins an order that another node has left.
        package let take: @Sendable (SharedOrder) -> Void
        /// Stops an order, since the named node has it.
        package let release: @Sendable (SharedOrder, _ holder: String) -> Void
        /// Applies a change to an order that was given at another node.
        package let change: @Sendable (SharedOrder) -> Void
        /// Reports the progress of the orders that this node holds.
        package let progress:
            @Sendable (_ done: @escaping @Sendable ([SharedOrderProgress]) -> Void) -> Void

        package init(
            take: @escaping @Sendable (SharedOrder) -> Void,
            release: @escaping @Sendable (SharedOrder, String) -> Void,
            change: @escaping @Sendable (SharedOrder) -> Void,
            progress:
                @escaping @Sendable (@escaping @Sendable ([SharedOrderProgress]) -> Void) -> Void
        ) {
            self.take = take
            self.release = release
            self.change = change
            self.progress = progress
        }
    }

    /// The name of this node in listings.
    package let name: String
    let node: String
    private let sealer: SessionSealer?
    private let seen = Mutex<[OrderBoard.View]>([])

    /// - Parameters:
    ///   - settings: the second level.
    ///   - sealer: seals orders for the nodes alone; nil without keys of a cluster.
    package init(_ settings: SharedStoreSettings, sealer: SessionSealer?) {
        name = settings.nodeName
        node = settings.node
        self.sealer = sealer
    }

    /// True if orders with headers or passwords may be written: they are sealed.
    package var keepsSecrets: Bool { sealer != nil }

    /// The orders that other nodes hold, as the last listing showed them.
    package func elsewhere(_ kind: SharedOrderID.Kind) -> [OrderBoard.View] {
        seen.withLock { views in
            views.filter { $0.order.id.kind == kind && !$0.isHere && $0.order.wish != .cancel }
        }
    }

    /// The order of this number if another node that is heard holds it.
    package func elsewhere(_ id: SharedOrderID) -> OrderBoard.View? {
        seen.withLock { views in
            views.first {
                $0.order.id == id && !$0.isHere && $0.isHeard && $0.order.wish.needsNode
            }
        }
    }

    /// Returns a new version of an order, dated after any that was seen.
    ///
    /// - Returns: nil for arguments that are too long or not printable ASCII.
    package func version(
        of id: SharedOrderID, _ wish: SharedOrder.Wish, query: String, now: WallTime
    ) -> SharedOrder? {
        SharedOrder(id, wish, query: query, given: time(of: id, now: now), node: node)
    }

    /// Returns the time of a new version of an order, later than that of any that was seen.
    package func time(of id: SharedOrderID, now: WallTime) -> WallTime {
        let before = seen.withLock { views in views.first { $0.order.id == id }?.order.given }
        return max(now, WallTime(nanoseconds: (before?.nanoseconds ?? 0).addingSaturated(1)))
    }

    func show(_ views: [OrderBoard.View]) { seen.withLock { $0 = views } }

    private static let sealedStart = Array("sluice sealed 1\n".utf8)

    /// Seals a text, if there are keys of a cluster; nil if libcrypto fails.
    func sealed(_ text: [UInt8], named name: String) -> [UInt8]? {
        guard let sealer else { return text }
        return sealer.seal(object: text, named: name).map { Self.sealedStart + $0 }
    }

    /// The number of the key that seals; nil without keys.
    var sealNumber: UInt32? { sealer?.firstID }

    /// True for an object that was sealed with another key than the one that seals now.
    func hasFormerSeal(_ bytes: [UInt8]) -> Bool {
        guard let sealer, bytes.starts(with: Self.sealedStart) else { return false }
        return !sealer.isSealedFirst(object: bytes.dropFirst(Self.sealedStart.count))
    }

    /// Opens a sealed text; nil if this node cannot.
    func opened(_ bytes: [UInt8], named name: String) -> [UInt8]? {
        guard bytes.starts(with: Self.sealedStart) else {
            // Without the nodes' key anybody who can write to the bucket could give orders; signs
            // of life and claims are never sealed.
            switch SharedOrderNames.Meaning(name) {
            case .order?, .progress?: return sealer == nil ? bytes : nil
            default: return bytes
            }
        }
        return sealer?.open(object: bytes.dropFirst(Self.sealedStart.count), named: name)
    }
}

extension SharedOrder {
    /// What an order that is confirmed leaves on the disk until the bucket has it.
    package var record: NodeOrderRecord {
        NodeOrderRecord(
            item: id.text, given: given.nanoseconds, wish: wish.rawValue, query: query)
    }

    /// Nil for a record that another program wrote.
    init?(_ record: NodeOrderRecord, node: String) {
        guard let id = SharedOrderID(text: record.item), let wish = Wish(rawValue: record.wish)
        else { return nil }
        self.init(
            id, wish, query: record.query, given: WallTime(nanoseconds: record.given), node: node)
    }
}
