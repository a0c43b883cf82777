// Fuzzes the rows of the state database: what a damaged or foreign file makes of a record is refused
// or is a record that the table accepts and that is read as it was.
import HTTP
import Numbers

/// Makes a row for each table from one input (called by libFuzzer).
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOne(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    guard let choice = bytes.first else { return 0 }
    let input = bytes.dropFirst()
    switch choice % 15 {
    case 0: check(ImportRecord.self, input)
    case 1: check(SessionRecord.self, input)
    case 2: check(KeyVetoRecord.self, input)
    case 3: check(KeyFindingRecord.self, input)
    case 4: check(LiveListRecord.self, input)
    case 5: check(FeedRecord.self, input)
    case 6: check(PinRecord.self, input)
    case 7: check(DownloadRecord.self, input)
    case 8: check(DownloadDayRecord.self, input)
    case 9: check(RecordingRecord.self, input)
    case 10: check(CrashRecord.self, input)
    case 11: check(NetworkRecord.self, input)
    case 12: check(PurgeRecord.self, input)
    case 13: check(VariablesRecord.self, input)
    default: check(NodeChangeRecord.self, input)
    }
    return 0
}

private func check<Record: StateRecord>(_ type: Record.Type, _ input: ArraySlice<UInt8>) {
    var source = ValueSource(rest: input)
    let values = Record.table.columns.map { _ in source.next() }
    // What the database itself checks: a row whose values its columns do not admit is not read.
    guard Record.table.admits(values), let record = Record(StateRow(values)) else { return }
    precondition(record.isValid, "a record that was read is not accepted: \(record)")
    let again = Record(StateRow(record.values))
    precondition(again == record, "a record reads differently: \(record)")
    _ = record.key
}

/// Values of any kind, one after the other.
private struct ValueSource {
    var rest: ArraySlice<UInt8>

    mutating func next() -> StateValue {
        guard let kind = rest.popFirst() else { return .null }
        switch kind % 7 {
        case 0: return .null
        case 1: return .integer(Int64(truncatingIfNeeded: number()))
        // Small numbers are valid in most columns.
        case 2: return .integer(Int64(take(1).first ?? 0))
        case 3: return .real(Double(bitPattern: number()))
        case 4: return .real(Double(take(1).first ?? 0))
        case 5: return .text(String(decoding: take(Int(take(1).first ?? 0)), as: UTF8.self))
        default: return .bytes(Array(take(Int(take(1).first ?? 0))))
        }
    }

    private mutating func number() -> UInt64 {
        take(8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    private mutating func take(_ count: Int) -> ArraySlice<UInt8> {
        let taken = rest.prefix(count)
        rest = rest.dropFirst(count)
        return taken
    }
}
