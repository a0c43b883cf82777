// The URLs at the places of live lists, for players that drop the query of a link. Pure.
import CachePolicy
package import HLS
package import Routing
package import Store
package import URISyntax

/// A list as a link path names it.
package struct LiveListID: Hashable, Sendable {
    package let name: UInt64
    package let epoch: Epoch

    package init(name: UInt64, epoch: Epoch) {
        self.name = name
        self.epoch = epoch
    }
}

/// The last windows of all lists by place, and some of the places that have left them.
package struct LivePlaces: Sendable {
    /// The result of a lookup.
    package enum Finding: Sendable {
        /// The URL that the last reading contained there, and the current epoch of this name.
        case url(AbsoluteURL, Epoch)
        /// The list was read in an earlier run only; its stored text, if any, must be read again.
        case unread(ObjectKey)
        case noPlace
    }

    private struct Left: Hashable {
        let list: ObjectKey
        let epoch: Epoch
        let role: ResourceRole
        let place: LivePlace
    }

    private struct OwnName: Hashable {
        let owner: SessionID
        let name: UInt64
    }

    /// A window as it was read, with the names that the link paths of its sections contain.
    package struct Window {
        fileprivate let names: [LiveReading.Name]
        fileprivate let keys: [ObjectKey]
        fileprivate let epoch: Epoch
        fileprivate let sections: [Int: UInt32]
        /// The byte ranges of its segments, with the last ones that a delta update skips.
        fileprivate let ranges: [RangeEnd]

        /// Returns the place of a name in link paths.
        fileprivate func position(of name: LiveReading.Name) -> LivePlace? {
            guard name.isSection, let section = sections[name.sequence] else {
                return name.position
            }
            return .section(section)
        }
    }

    /// How many places that have left their windows are remembered, and the most bytes of their
    /// URLs with some 100 for each place; the same again for parts.
    private static let mostLeft = 4_096
    private static let mostBytesLeft = 16 << 20
    /// The most ranges of skipped segments that are kept: only the last one is continued, or one
    /// shortly before it by a delta update that is read late.
    private static let mostSkippedRanges = 16

    private var windows: [ObjectKey: Window] = [:]
    /// The served list, by the name that link paths give it.
    private var lists: [UInt64: ObjectKey] = [:]
    /// The lists that are kept for one session alone, by the name that its link paths give them.
    private var ownLists = RecentMap<OwnName, ObjectKey>(capacity: EpochTable.mostLists)
    private var left = RecentlyUsedMap<Left, (url: AbsoluteURL?, epoch: Epoch)>(
        mostKeys: LivePlaces.mostLeft, mostBytes: LivePlaces.mostBytesLeft)
    /// Parts that have left their windows, kept apart since there are many; the URL is nil where
    /// several resources had one place.
    private var leftParts = RecentlyUsedMap<Left, (url: AbsoluteURL?, epoch: Epoch)>(
        mostKeys: LivePlaces.mostLeft, mostBytes: LivePlaces.mostBytesLeft)

    /// Notes which list is served under the name that a path contains.
    ///
    /// - Parameters:
    ///   - list: the list that is served.
    ///   - asked: the list that link paths name.
    ///   - owner: the session that the list is kept for; nil for one that sessions share.
    package mutating func note(
        _ list: ObjectKey, named asked: ObjectKey, for owner: SessionID? = nil
    ) {
        if let owner { return ownLists[OwnName(owner: owner, name: asked.listName)] = list }
        // One name for each list, and as many again for alternative names.
        if lists.count >= 2 * EpochTable.mostLists { lists = [:] }
        lists[asked.listName] = list
    }

    /// Returns the list that a session's link paths name.
    package func list(named name: UInt64, for session: SessionID) -> ObjectKey? {
        ownLists[OwnName(owner: session, name: name)] ?? lists[name]
    }

    /// Forgets a list.
    ///
    /// - Returns: its last window, which is costly to free.
    package mutating func forget(_ list: ObjectKey) -> Window? {
        lists[list.listName] = nil
        return forgetWindow(of: list)
    }

    /// Forgets the last window of a list; players that drop queries have it read again.
    ///
    /// - Returns: the window, which is costly to free.
    package mutating func forgetWindow(of list: ObjectKey) -> Window? {
        windows.removeValue(forKey: list)
    }

    /// Adds the window of a list in its state after a reading.
    ///
    /// - Returns: the window before, which is costly to free.
    package mutating func take(
        _ reading: LiveReading, keys: [ObjectKey],
        of list: (key: ObjectKey, known: EpochTable.List), epochOf: (ObjectKey) -> Epoch
    ) -> Window? {
        if lists[list.key.listName] == nil { note(list.key, named: list.key) }
        let first = reading.summary.mediaSequence + reading.summary.skippedSegmentCount
        let former = windows[list.key]
        if let former {
            // Sequence numbers rise from name to name.
            let stays = former.epoch == list.known.epoch
            let end = stays ? former.names.firstIndex { $0.sequence >= first } : nil
            let gone = former.names.indices.prefix(end ?? former.names.count)
            for index in gone.suffix(Self.mostLeft) {
                remember(index, of: former, in: list.key, epochOf)
            }
            // Segments stay in a list for longer than their parts (8216bis 4.4.4.9).
            if let end, reading.summary.partTarget != nil {
                let parts = (end..<former.names.count).filter { former.names[$0].isListedPart }
                let listed = reading.names.first { $0.isListedPart }
                let unlisted =
                    listed.map { listed in parts.prefix { former.names[$0].precedes(listed) } }
                    ?? parts[...]
                for index in unlisted.suffix(Self.mostLeft) {
                    remember(index, of: former, in: list.key, epochOf)
                }
            }
        }
        let named = reading.sections.isEmpty ? [] : list.known.sections
        windows[list.key] = Window(
            names: reading.names, keys: keys, epoch: list.known.epoch,
            sections: Dictionary(
                named.map { ($0.number, $0.name) }, uniquingKeysWith: { $1 }),
            ranges: Self.ranges(
                of: reading, after: former?.epoch == list.known.epoch ? former?.ranges ?? [] : []))
        return former
    }

    /// Returns the byte ranges of a reading's segments, with the last ones of `former` that it
    /// skips.
    ///
    /// Called under the lock of the live lists for each delta update: the cost and the memory do
    /// not depend on how many segments are skipped.
    private static func ranges(of reading: LiveReading, after former: [RangeEnd]) -> [RangeEnd] {
        let summary = reading.summary
        guard summary.isSkipDelta else { return reading.ranges }
        let first = summary.mediaSequence + summary.skippedSegmentCount
        // From the end: the search passes only segments that this reading lists.
        guard let last = former.lastIndex(where: { $0.number < first }) else {
            return reading.ranges
        }
        let skipped = former[...last].suffix(mostSkippedRanges)
            .filter { $0.number >= summary.mediaSequence }
        // The text of the former reading is not kept for them.
        return skipped.map { known in
            RangeEnd(number: known.number, place: .whole(known.place.url), end: known.end)
        } + reading.ranges
    }

    /// Returns the byte ranges of the segments in a list's last window, ascending; of segments that
    /// a delta update skips, those of the last ones.
    package func ranges(in list: ObjectKey) -> [RangeEnd] { windows[list]?.ranges ?? [] }

    /// Returns the names of the sections of a list's last window, by those that their URLs alone
    /// give them.
    package func sectionNames(in list: ObjectKey) -> [UInt32: UInt32] {
        guard let window = windows[list] else { return [:] }
        var names: [UInt32: UInt32] = [:]
        for name in window.names where name.isSection {
            guard case .section(let ofURL)? = name.position,
                case .section(let given)? = window.position(of: name)
            else { continue }
            names[ofURL] = given
        }
        return names
    }

    /// Remembers a name that a list no longer contains.
    private mutating func remember(
        _ index: Int, of former: Window, in list: ObjectKey, _ epochOf: (ObjectKey) -> Epoch
    ) {
        let name = former.names[index]
        guard let place = former.position(of: name), !name.isHint else { return }
        let key = Left(list: list, epoch: former.epoch, role: name.role, place: place)
        let (url, epoch) = (name.place.url, epochOf(former.keys[index]))
        let bytes = url.bytes.count + 100
        guard name.role == .part else { return left.keep((url, epoch), bytes: bytes, for: key) }
        let isOne = leftParts[key].map { $0.url?.path == url.path } ?? true
        leftParts.keep((isOne ? url : nil, epoch), bytes: bytes, for: key)
    }

    /// Returns what the last reading of a list contained at a place.
    ///
    /// Parts of one segment that are ranges share a place. If they are ranges of several resources,
    /// it leads nowhere: only the query of a link says which one is meant.
    package func find(
        _ place: LivePlace, role: ResourceRole, in list: (key: ObjectKey, epoch: Epoch),
        epochOf: (ObjectKey) -> Epoch
    ) -> Finding {
        guard let window = windows[list.key] else { return .unread(list.key) }
        let isThere = { (name: LiveReading.Name) in
            name.role == role && window.position(of: name) == place
        }
        if list.epoch == window.epoch, let index = window.names.lastIndex(where: isThere) {
            let url = window.names[index].place.url
            if role == .part, case .segment = place,
                window.names.contains(where: { isThere($0) && $0.place.url.path != url.path })
            {
                return .noPlace
            }
            return .url(url, epochOf(window.keys[index]))
        }
        let key = Left(list: list.key, epoch: list.epoch, role: role, place: place)
        guard let known = role == .part ? leftParts[key] : left[key], let url = known.url else {
            return .noPlace
        }
        return .url(url, known.epoch)
    }
}
