import HTTP
import Model
@testable import Serving
import Testing

/// The part of a stored response that a range gets.
@Suite struct AnswerPartTests {
    private func part(
        _ specs: [ByteRangeSpec], total: Int64, _ stage: PlanStage = PlanStage()
    ) throws -> AnswerPart {
        let response = try #require(try stage.outcome().facts.response)
        return AnswerFacts(
            resource: try stage.resource(), fields: Fields(), method: .get, range: .ranges(specs),
            stored: response.facts, total: total
        ).part
    }

    // Players request everything with `bytes=0-`, empty segments included.
    @Test(arguments: [PlanStage(), PlanStage.mounted("max-age=600", age: 1)])
    func `the first or last bytes of an empty body are all of it`(_ stage: PlanStage) throws {
        for spec: ByteRangeSpec in [.from(0), .bounded(0, 0), .bounded(0, 1_023), .suffix(5)] {
            #expect(try part([spec], total: 0, stage) == .whole, "\(spec)")
        }
        for spec: ByteRangeSpec in [.from(1), .bounded(1, 2), .suffix(0)] {
            #expect(try part([spec], total: 0, stage) == .rangeNotSatisfiable, "\(spec)")
        }
    }

    @Test func `a range of a body that is not empty gets its bytes`() throws {
        #expect(
            try part([.from(0)], total: 10) == .part(ResolvedRange(first: 0, last: 9)))
        #expect(try part([.from(10)], total: 10) == .rangeNotSatisfiable)
    }
}
