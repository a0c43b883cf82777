// Fuzzes two to five readings of a live playlist, one after the other, through everything pure that
// remembers the reading before: see Tests/LookaheadTests/ReadingSequences.swift.
import Glibc
import HLS
import Lookahead

/// Runs the readings that one input stands for (libFuzzer calls it).
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOne(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let input = UnsafeBufferPointer(start: start, count: count)
    if let fault = ReadingSequences.fault(FuzzedReadings(input)) {
        // An optimised build leaves out what a failed precondition says.
        print("fault: \(fault)")
        fflush(nil)
        preconditionFailure(fault)
    }
    return 0
}
