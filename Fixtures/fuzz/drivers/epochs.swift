// Fuzzes what live lists leave in memory and on disk: see
// Tests/ModelTests/EpochSequences.swift.
import Glibc

/// Runs the readings that one input stands for (libFuzzer calls it).
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOne(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let input = UnsafeBufferPointer(start: start, count: count)
    if let fault = EpochSequences.fault(FuzzedReadings(input)) {
        // An optimised build leaves out what a failed precondition says.
        print("fault: \(fault)")
        fflush(nil)
        preconditionFailure(fault)
    }
    return 0
}
