## Where the rows of a step of a recurrent layer lie, and their states before it. ``later``: C for whether another step came before.

<%def name="of_step(packed, later='n')">
% if packed:
        const long base = starts_p[starts_o + step], live = min(end, starts_p[starts_o + step + 1] - base);
        const long from = ${later} ? starts_p[starts_o + before] : 0, have = ${later} ? starts_p[starts_o + before + 1] - from : 0;      // rows that it had
% else:
        const long base = step * N, live = end;
        __global const float* last_h = ${later} ? y_p + y_o + before * N * H : h_p + h_o;
        __global const float* last_c = ${later} ? cells_p + cells_o + before * N * H : c_p + c_o;
% endif
</%def>
<%def name="last(row, packed)">${f"({row} < have ? y_p + y_o + (from + {row}) * H : h_p + h_o + {row} * H)" if packed else f"(last_h + {row} * H)"}</%def>
<%def name="kept(row, packed)">${f"({row} < have ? cells_p + cells_o + (from + {row}) * H : c_p + c_o + {row} * H)" if packed else f"(last_c + {row} * H)"}</%def>
