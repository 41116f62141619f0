## How running sums, products and log-sum-exps combine their elements.
##
## nothing(OP, T)    what combines with anything to that; for sums the zero that keeps the sign of zeros
## combine(OP, T)    the macro COMBINE(a, b)
<%!
    def nothing(OP, T):
        return dict(sum=f"({T.acc})(-0.0f)" if T.is_complex else "-0.0f" if T.acc == "float" else "-0.0" if T.acc == "double" else "0", prod=T.one, logaddexp=f"({T.acc})(-INFINITY, 0)" if T.is_complex else "-INFINITY")[OP]
%>
<%def name="combine(OP, T)">
% if OP == "sum":
#define COMBINE(a, b) ((a) + (b))
% elif OP == "prod":
#define COMBINE(a, b) ${f"clnn_c_mul_{'d' if T.acc == 'double2' else 'f'}((a), (b))" if T.is_complex else "((a) * (b))"}
% else:
#define COMBINE(a, b) ${f"clnn_c_logaddexp_{T.acc[0]}((a), (b))" if T.is_complex else "((a) == (b) && isinf(a) ? (a) : fmax(a, b) + clnn_log1p(clnn_exp(-fabs((a) - (b)))))"}
% endif
</%def>
