import HLS
package import HTTP
package import Model
import Numbers
package import URISyntax

extension TimeShiftTable {
    /// Returns delivery directives with the origin's numbers (8216bis, 6.2.5.2).
    package func translated(
        _ directives: [QueryItem], for url: AbsoluteURL, _ session: Session
    ) -> [QueryItem] {
        guard session.isShifted, !directives.isEmpty, let list = known(url, of: session)
        else { return directives }
        let shift = list.shift
        return directives.map { item in
            guard item.rawName == "_HLS_msn",
                let number = item.rawValue.flatMap({
                    ExternalNumber.integer($0, in: 0...ExternalNumber.largest)
                })
            else { return item }
            return QueryItem(rawName: item.rawName, rawValue: "\(shift.originNumber(of: number))")
        }
    }
}
