// The state of live lists after consecutive versions: epochs, places, delivery directives, and what
// restarts keep.
//
// Each function returns a violation, or nil; a broken invariant ends the process.
// `Fixtures/fuzz/drivers/epochs.swift` uses this file too, together with the sources it tests.
import DurableState
import HLS
import HTTP
import Posix
import Routing
import Store
import URISyntax

#if canImport(Model)
import FuzzSupport
@testable import Model
#endif

extension EpochTable {
    /// Applies a whole reading, as `LiveMemory` does.
    mutating func take(
        _ reading: LiveReading, generation: UInt64, _ times: Times,
        at place: (list: ObjectKey, names: WindowNames, version: UInt64)
    ) -> (relation: Relation, dropped: Dropped) {
        var taking = begin(reading, generation: generation, times, at: place)
        while goOn(&taking, names: .max) {}
        return (taking.relation, end(taking))
    }
}

struct EpochSequences {
    private var readings: FuzzedReadings
    private var epochs = EpochTable()
    private var places = LivePlaces()
    private var generation: UInt64 = 0
    private var now: Int64 = 1_800_000_000
    private let keys = [ObjectKey(sha256Of: "list"), ObjectKey(sha256Of: "other")]

    private init(_ readings: FuzzedReadings) { self.readings = readings }

    /// Runs everything on the versions that `bytes` encode.
    static func fault(_ readings: FuzzedReadings) -> String? {
        var sequences = Self(readings)
        return sequences.fault()
    }

    private mutating func fault() -> String? {
        guard let base = try? AbsoluteURL("http://origin.test/live/index.m3u8") else { return nil }
        for list in readings.mediaPlaylists() {
            let key = keys[readings.happens(oneIn: 4) ? 1 : 0]
            let wasLive = epochs.lists[key] != nil
            if let reading = try? LiveReading(
                list, base: base, wasLive: wasLive, options: PlaylistReading())
            {
                if let fault = take(reading, of: key) { return fault }
            }
            if let fault = positionFault(list) { return fault }
            if readings.happens(oneIn: 4), let fault = restartFault() { return fault }
            if readings.happens(oneIn: 6) { epochs.adopt(keys[0], as: keys[1]) }
        }
        return nil
    }

    // MARK: Epochs

    private mutating func take(_ reading: LiveReading, of list: ObjectKey) -> String? {
        let former = epochs.lists[list]
        let known = epochs.knownNames(of: list, version: 0)
        let names = WindowNames(reading, known: known) { url, _ in ObjectKey(sha256Of: url.text) }
        if names.keys.count != reading.names.count { return "names are lost" }
        // Clocks jump, and lists arrive late.
        now += readings.happens(oneIn: 8) ? Int64(clamping: readings.number()) / 2 : 2
        now = min(max(now, 0), Int64(UInt32.max))
        let requested = WallTime(seconds: now)
        let received = requested + .seconds(Int64(readings.choose(3)))
        generation += 1
        let relation = epochs.take(
            reading, generation: generation, .init(requested: requested, received: received),
            at: (list, names, 0)
        ).relation
        guard let taken = epochs.lists[list] else { return "the list is forgotten" }
        if relation.isChange {
            let epochs = epochs
            _ = places.take(reading, keys: names.keys, of: (list, taken)) { epochs.epoch(of: $0) }
        }
        if relation == .reset, let former, taken.epoch == .first || taken.epoch == former.epoch {
            return "the epoch goes from \(former.epoch.number) to \(taken.epoch.number)"
        }
        if taken.start < 0 || taken.end < taken.start { return "the window is \(taken.start)..." }
        if taken.sections.count > LiveSection.mostKept { return "too many sections are kept" }
        return findFault(reading, names, of: (list, taken), isTaken: relation != .same)
    }

    private func findFault(
        _ reading: LiveReading, _ names: WindowNames,
        of list: (key: ObjectKey, known: EpochTable.List),
        isTaken: Bool
    ) -> String? {
        let id = (list.key, list.known.epoch)
        // Places at which parts are ranges of several resources lead nowhere.
        let parts = Dictionary(grouping: reading.names.filter { $0.role == .part }) { $0.position }
        let shared = parts.filter { Set($0.value.map { $0.place.url.path }).count > 1 }
        for (name, key) in zip(reading.names, names.keys) {
            if isTaken, epochs.since(key) == nil { return "a name of the window is not known" }
            guard isTaken, let place = name.position, !name.isHint, !name.isSection else {
                continue
            }
            if name.role == .part, case .segment = place, shared[place] != nil { continue }
            let found = places.find(place, role: name.role, in: id) { epochs.epoch(of: $0) }
            guard case .url = found else { return "\(place) is not found" }
        }
        return nil
    }

    // MARK: Restarts

    private mutating func restartFault() -> String? {
        var next = EpochTable()
        for (key, list) in epochs.lists {
            let record = list.record(of: key)
            guard record.isValid, let read = LiveListRecord(StateRow(record.values)) else {
                return "\(record) is not read again"
            }
            let restored = EpochTable.List(read)
            if restored.record(of: key) != record { return "what is kept changes when it is read" }
            next.restore(restored, key: key)
        }
        // A record that another version or a damaged disk left.
        let numbers = (0..<8).map { _ in StateValue.integer(Int64(readings.edge()) ?? 0) }
        let sections = (0..<readings.choose(5)).map { _ in readings.edge() }
        let row = StateRow(
            [.bytes(keys[0].bytes)] + numbers + [.text(sections.joined(separator: " "))])
        if let record = LiveListRecord(row), record.isValid, readings.happens(oneIn: 2) {
            next.restore(EpochTable.List(record), key: keys[0])
        }
        epochs = next
        places = LivePlaces()
        return nil
    }

    // MARK: Delivery directives

    private mutating func positionFault(_ list: [UInt8]) -> String? {
        let query = "_HLS_msn=\(readings.edge())&_HLS_part=\(readings.edge())"
        let directives = DeliveryDirectives(QueryItem.items(of: query))
        guard let position = LivePosition(list) else { return nil }
        if position.longestHold > .seconds(120) || position.longestHold < .zero {
            return "a request is held for \(position.longestHold)"
        }
        if position.pause <= .zero { return "the origin is asked without a pause" }
        guard let directives else { return nil }
        if position.satisfies(directives), position.isNext(directives) {
            return "what is there is still to come"
        }
        return nil
    }
}
