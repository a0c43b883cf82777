import Testing

@testable import Bench

/// Median, spread and the formatting of figures.
@Suite struct StatisticsTests {
    @Test(
        arguments: [
            ([], 0), ([3], 3), ([9, 1, 5], 5), ([1, 2, 3, 4], 2), ([2, 2, 2, 100, 2], 2),
        ] as [([Double], Double)])
    func `the median is the middle value or the lower of two`(values: [Double], wanted: Double) {
        #expect(median(values) == wanted)
    }

    @Test func `a quantile is a measured value`() {
        let values = (1...100).map(Double.init).shuffled()
        #expect(quantile(values, 0) == 1)
        #expect(quantile(values, 0.99) == 99)
        #expect(quantile(values, 1) == 100)
    }

    @Test func `the spread is half of the range relative to the median`() {
        #expect(spread([8, 10, 12]) == 0.2)
        #expect(spread([10, 10]) == 0)
        #expect(spread([10]) == nil)
        #expect(spread([0, 0]) == nil)
    }

    @Test(
        arguments: [
            (0, "0"), (0.123456, "0.123"), (1.5, "1.5"), (12.345, "12.3"), (123.6, "124"),
            (98_765, "98765"), (0.000101, "0.000101"), (-3.77, "-3.77"), (.infinity, "0"), (4, "4"),
        ] as [(Double, String)])
    func `numbers have three significant digits`(value: Double, wanted: String) {
        #expect(NumberText.short(value) == wanted)
    }

    @Test func `text is quoted for JSON and XML`() {
        #expect(quotedJSON("a \"b\" \\ \u{1}\n") == #""a \"b\" \\ \u0001\u000a""#)
        #expect(escapedXML("a < b & c > d") == "a &lt; b &amp; c &gt; d")
    }

    @Test func `columns are as wide as their widest cell and numbers are right-aligned`() {
        let table = markdownTable(["name", "n"], [["a", "1"], ["bcdef", "200"]], numbers: [1])
        let wanted = """
            | name  |   n |
            | ----- | --: |
            | a     |   1 |
            | bcdef | 200 |

            """
        #expect(table == wanted)
    }

    @Test func `a Markdown table is parsed by its column names`() {
        let text = """
            A title

            | way  | first, ms |
            |------|----------:|
            | cold | 12        |
            | warm | 3         |

            | other |
            |-------|
            | x     |
            """
        let rows = PipeTable.rows(text)
        #expect(rows.count == 3)
        #expect(rows[1].map(\.name) == ["way", "first, ms"])
        #expect(rows[1].map(\.value) == ["warm", "3"])
        #expect(rows[2].map(\.value) == ["x"])
    }
}
