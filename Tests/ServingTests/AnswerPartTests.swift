import HTTP
@testable import Model
@testable import Serving
import Testing

/// The part of a stored response that a range gets.
@Suite struct AnswerPartTests {
    private func part(
        _ specs: [ByteRangeSpec], total: Int64?, storedEnd: Int64 = 0, isGrowing: Bool = false,
        stage: PlanStage = PlanStage()
    ) throws -> AnswerPart {
        let response = try #require(try stage.outcome().facts.response)
        var resource = try stage.resource()
        if isGrowing { resource = resource.changing { $0.live.growth = .init(end: 9_000_000) } }
        var facts = AnswerFacts(
            resource: resource, fields: Fields(), method: .get, range: .ranges(specs),
            stored: response.facts, total: total)
        facts.storedEnd = storedEnd
        return facts.part
    }

    // Players request everything with `bytes=0-`, empty segments included.
    @Test(arguments: [PlanStage(), PlanStage.mounted("max-age=600", age: 1)])
    func `the first or last bytes of an empty body are all of it`(_ stage: PlanStage) throws {
        for spec: ByteRangeSpec in [.from(0), .bounded(0, 0), .bounded(0, 1_023), .suffix(5)] {
            #expect(try part([spec], total: 0, stage: stage) == .whole, "\(spec)")
        }
        for spec: ByteRangeSpec in [.from(1), .bounded(1, 2), .suffix(0)] {
            #expect(try part([spec], total: 0, stage: stage) == .rangeNotSatisfiable, "\(spec)")
        }
    }

    @Test func `a range of a body that is not empty gets its bytes`() throws {
        #expect(
            try part([.from(0)], total: 10) == .part(ResolvedRange(first: 0, last: 9)))
        #expect(try part([.from(10)], total: 10) == .rangeNotSatisfiable)
    }

    @Test func `the first range of a file that grows is not all of it, however long it is`()
        throws
    {
        let long = ByteRangeSpec.bounded(0, 2_999_999)
        let range = AnswerPart.part(ResolvedRange(first: 0, last: 2_999_999))
        #expect(try part([long], total: nil, isGrowing: true) == range)
        // Its list has ended since.
        #expect(try part([long], total: nil, storedEnd: 3_000_000) == range)
        // It may be all that a player expects of a file.
        #expect(try part([long], total: nil, storedEnd: 2_999_999) == .whole)
        #expect(try part([.bounded(0, 99)], total: nil) == .part(ResolvedRange(first: 0, last: 99)))
    }
}
