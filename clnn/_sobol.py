"""Direction numbers of Sobol sequences, for 1111 dimensions.

Each dimension but the first has a primitive polynomial over the integers modulo 2, in order, and as many odd starting numbers m[j] < 2^(j+1) as its degree.
The starting numbers are those of S. Joe and F. Y. Kuo, "Constructing Sobol sequences with better two-dimensional projections", SIAM J. Sci. Comput. 30,
2635-2654 (2008), table new-joe-kuo-6: Copyright (c) 2008, Frances Y. Kuo and Stephen Joe; they may be redistributed with this notice and without warranty.
"""
from __future__ import annotations

import base64
import functools

import numpy as np

MAXBIT, MAXDIM = 30, 1111


def _product(a, b, poly):
    """The product of two polynomials modulo ``poly``; bits are coefficients."""
    degree, result = poly.bit_length() - 1, 0
    while b:
        if b & 1:
            result ^= a
        a, b = a << 1, b >> 1
        if a >> degree & 1:
            a ^= poly
    return result


def _power_of_x(n, poly):
    result, base = 1, 2 if poly.bit_length() > 2 else 2 ^ poly
    while n:
        if n & 1:
            result = _product(result, base, poly)
        base, n = _product(base, base, poly), n >> 1
    return result


def primitive_polynomials():
    """Primitive polynomials in order: those of which x generates all powers."""
    degree = 1
    while True:
        order = (1 << degree) - 1
        factors = [p for p in range(2, order + 1) if order % p == 0 and all(p % q for q in range(2, int(p ** 0.5) + 1))]
        for middle in range(1 << degree - 1):
            poly = 1 << degree | middle << 1 | 1
            if _power_of_x(order, poly) == 1 and all(_power_of_x(order // f, poly) != 1 for f in factors):
                yield poly
        degree += 1


@functools.lru_cache(8)
def directions(dimensions):
    """int64 (dimensions, MAXBIT): bit ``MAXBIT - 1 - j`` of number j is the first that is set."""
    bits = np.unpackbits(np.frombuffer(base64.b85decode(_START), np.uint8))
    v, at = np.empty((dimensions, MAXBIT), np.int64), 0
    v[0] = 1 << np.arange(MAXBIT - 1, -1, -1)
    for row, poly in zip(v[1:], primitive_polynomials()):
        degree = poly.bit_length() - 1
        for j in range(MAXBIT):
            if j < degree:
                m = int("".join(map(str, bits[at:at + j])) + "1", 2)
                at += j
                row[j] = m << MAXBIT - 1 - j
            else:
                x = int(row[j - degree])
                x ^= x >> degree
                for k in range(1, degree):
                    if poly >> degree - k & 1:
                        x ^= int(row[j - k])
                row[j] = x
    return v


_START = (
    "z)s0RMC_mdu3ur`dQ{ti%u}-xpL=J|<~&CnU(guT$sJ<f9<0&qMA1A61Ex!+W0cy!-!0N1Eku>TX2agN-eRHJ6Zx3+zxDPKsb={u)-aFJXf4h@1n@~g%%rI4-h?c<OOkYcy!#qLzYYN1T(R6CByn&3"
    ")Kb-`S#lSx-)Mtigh52h1y>dv_J1O(A859!I}UcM&6Ed!-=>(2z}ffSQn#J4iU(!WR{$+*?~+ca+)qN38h|J-Sm68Hf>aqmr+J3|=RtnOr{scte(asSFER?oy0_{O7;P1YhdBlzDb|eY@H=1rF^>C6"
    "vj~7(_>@s_aLMACbd2Fv_r_5AE*Uy<#oOe1C0Mj<O8J%-oLr%g8^JuyHGtp*B$0bN)ZpGM%W8wKNkqIg)uU58C}N;*3E$@sywt*OMJ<<0OK|y()F0jHD3)~DUr7h4Gmw(v-sNbf|MWMUXgdBjO3q7%"
    "!qoTlm_#6#45y)#pQ$7N9IHMl#+W7k3X#$<6Q9K3UmJBH`l0Gwvgz(m62M#{+qw1n4yiDaoN8cg_sHOysGsN6t)hH4A)Uiv4vnJCZxWG}ou?7IYg!Qk<;C(C$#K(S_cgmGRH{_UrzIEONO<QO0?sd4"
    "DeSOx+8H%vPtQSFyM^?H1MqUptmmnNI5(Gb5=ai{R^kR~pW1fqEXVm+F@pJFlTq;^O~>Kw77O3pUqRwUxC`R|v-4syZI{MrXYL|qoY@I#03%``E#A&=ag7G6UKS-vKI<!ACa(WNdko-zoZboR&fa|%"
    "6%t9zy5a|Vc>aYlLGnwb>=SRxDKLP|u|>0IzB>(kO1~*T*Xrt~&r4(VY@XIKFalj=O(wlI$obz~6>_KOsGfVzMf}UQgD{TAGS7bFho=G)tI=I`4&Eag=8d^5nwKS&21Ch<S&#>z*1g!9UWf_1SlOeS"
    "p&fB{!VK>z;Txsy3u47=&j3JnG01iXyy0P54mrx++UxPbe?{K@@G&;QqAvm*5u8yEM%cNS_hH8vYi7=@CdC_sOKJDL);iSlbgtIB!`QmbrNWGDugFbE1+`t=C1d2BFXe8)1UIc*AAxccbT<P^C)~)H"
    "xTmqvY=V8X`|*H^<93+2i!8Na(UD9pQI?F>HlPJFyU7$z|8edNAx`4~)ylkU{Z9S;1X3~Y1hKR61>Cz4ym+to$V(8w_A;@Oq_SV0WlA8q6aLw<Srr3V|CZI4aADcQ%qnOpd}3=$LoP~=mlg^P0+F^F"
    "B|izXYjIhNuIi1Y58xJjMN(F!KB6)VP@>qNs`3!yilH)$>k@mc?U7XGe<_xH-tCR$f~(~jqQ-a9wJgC7qs|v$hRComyk1?<RBu3H3!2m!Urgnw*xV8}@kLF7G(C?^Zy+!pe;Q9%$n90DXb91yLP#9G"
    "*spR?>-8}hyHjgvJSzWXBqG$2yqY^<qTT!J3{Paen!`*lD)YV77Q6S+`&tPE{uybD&i(`izkXN5=giX+pKePFtNG3Nl&1N;2v)8niPen#`r0N~3ng1%x<f9d(k6gNd}QCLyD-6!=F7jPKdU?9GxX};"
    "Kb!2YaH&du!AG6-Zl+UAl!$tRArV0UAXOq3jF^JAuOk0uB~pDcF|-AgpfII3v*(W5<F0=kX&{kAUKuC#k_*a2hP<bNO6HxP%=aL9cmHvrsbKib1go1go4@xn!J(Nh2zl)bC#4gq2?*?b38r;DPr)NP"
    "ro~<Bg&}GYhP~^VDQiVxf^doBm_%ndO{l8nz9K8u_3v-K1Jl1CV%$F}dFv@eFdRN&$NCLUA*>E#qenpk61bbv)O0W-{P&BQi2dZ<TuH;_I_B+EU(|Pl71MF}31P!533+AC#k&55MV-!M5q2uI-=xeI"
    "b!Zi@D!!1|D68l>QoDO3nhG$9Y^!DmcfvwHC{cA<7eWIX%EShomG|Ot6wo<S1OQNhQN4ig4I?tNwE$$C0h~(tS(^KmR~_N&Y-hdONH)ipV@T|Q)o3yY>kvsAh)G%ia!m&TA-39vYf8D-BE9;ShQ7T5"
    "@3rR5&e0sRXALK<N=&G6av@S4-^Nk3<JE*8NJy&Fc6qhbm}2cM=)f~tTf<-_YVE`9Yvv0?MIC!*->BLHe}~iI1NtaGOd5+wSo@s#ZlAj!$a3meku{M!bqIJ7Wy9l9_|CMH)3suEo4;gVa-Ob?j1Y2c"
    "2j6o6W(!Xbnv^Fl^9U>F*0r;P&)bWuGbLR-S_Wnx%r-aHDq!QC*kW^F%)`r;Xfu<RvjEW8vnNYRBt0hO40<TZWs$CK&P>7Kc9G2Le<zg7vVJ7bB&`eL^Q6afUp7{*a~|Pu996q;z5aI5`<sMV-*i|&"
    "GrRc&J|I0-5U1v2!Q5Co$C3GxMU)t(r7?u~o7e<t`);p}OQ}%^<o-#xN`*%w)v&oU%*<6Wt`*i79!xnB@n0VGD3v##?F@5=*-3DUQp}ZfBr=<Z*!Rj2*?rTVKsU~<^uSyfSKKv&xZYMEEvKxh?Br)Y"
    "#H;l|D0&&(emht%Y5#&07#p4X*ez|$%X7QSRg?s0qwZ_Tt*jkR*QH{`G)o&1;)yVj60M#8MFwPU?^nOBxIY24agiV9841ac$qgi&4JF(wG<m*z3t5@<R;B*l^CIynXKT!eW&{@Bht~KZj>Oa@k}=`5"
    "Y?7le9fc9}ObXZf>u&Rht27ZPf}W^{c>N%!&cb81o+kiDTY&}nMDfc5(y|Q+YL}1?K7krA?GyJEl3I&-$OrNsRoySK2@^`5R0$~RME<sPGW8-~><I{fSla$3ni5w`e!Z=u=6!D_U@whhv3r72OhDiY"
    "kJZ$AnIx7!!w3;v!dm@TO)UwrrW>^$SFz*SzV$|A%5T2v^4{$<{XzeJ>x8&B&^`q|Rz5EcexecG*~HD|cUzRIB`7Sf6D|13ltjiy+%i6MQwj<Jb9&z-+jbdDbCV>IXMy1Fv7U`3!L{T|6QX45Rl@QA"
    "5q`fTEa-kscO`7i@xdaFgk2I7^FbGdYy<KTzH=t%%O4eq7qYGF&<n)PY+-U4Ei2t2(qaPGf!hymXN*_YNY&QH(Q!th_5^R=5SbxQ6|>tjjEBeB1JNuC5?X6Sl({}4qS*uyd@qsBa;|8Kc117bFb=kR"
    "tj9kF1Q^EkJNBx$hv36HahIEGJx%amO2^ee(ocNq*C@8~0{kddb+wW#Uv(#cF{ZMt2=VDk?CQjzQh#tQZDj9-{f4HB3GM02)M(qs)O4rK(9`)jvS3xF);6D0^~x3_J{P;8n~gj0idyEQnsy?0c_kIr"
    "yIJXb=5;hgo_Jr)vJ4oyq$^hkWt5n=6A!u<G_+JpPWeA4U24uv4;k4Lu-FeeT>u56eg|ESxrHxTQ5W%z@xP!HuOT{YczRU#D^?UH{i};xPw${k@{Mh^U8-A6x%y*_>tB^uWa!&9(GR@)D07r|T!$JS"
    "9F+IHcbKtCOIi%Cwf|c94SCz3POtxp1J*NfB`@puUN#;1$@0)N!dwma7CeRDV^Z8ljmA{1b-`J6#$UR-vX?w<RlI{2iyvV0evo~}*D6Ai^#F2H=1aA{&vMTvPhDBm2fOn68kM&Aw<FBy_j&$Z$w0r2"
    "l*dZ>(-^G$Whv5<Yu0~{>zj6$*h7V>dLJXxC*td4(t>cLGn|V4VnZSv>NdahffuY_eHcsDY7k&kdU7e=K|4J{$;3J2luP|YTIGqR->^OdvB~bDmQa0Vl#y2CQy-5O?d8<^zNjQKwP3*aFuAA;bOXw{"
    "dIW79aBVWARRVAWoikxk&t)W)57eU?0eL)F0ae4n9!qQix_}H*A#75mFGUE08lppW;-4d%bg~N7X^xE>mI{VWgi_7|8uM%qUHUurPp2qO*4Qb$I#X&#v@KQT7tk5HJ2^5v`_>^N5SdW)ZiRJgp&+T6"
    "B*m0TfN>P_ShB;85)2234oJ!$Sp+31sC%<c0ScaKQfywR<9NR~E8Sv2hG_9vTeNnBtF8_vpkT*Zh-?YKdApk|obCgVOhi6rB_%m{uc~zKs+R{9h#j0V_MTfH=F(25#fC&X_UuM#me7Y(#-E>d^7DJA"
    "uQ9J4B!vx#nCD8VV3w*J6((1YPj+Vg!RJ_QK;i9y3E-h0N4@C`k|0P{zkC(o7+`{m%w@oGHdi{*)vB&!Y7?~NN+}0eCSnP^o_d&`>_1wbmqFUEq<9HsH{Z$QgPlCkXG_Iwd)2PJ;otd6fi{IvA%WL6"
    "lB##An*ZTvghlH#BBk0o^4WY56=2jRJd+ReZ}Bhv7_2R9<Q5F1kUf>oA;;Zzh#}Y^xUarBQa`oT3lvFwq=m<c=~IoAzGc+ajfVVVG109fd-%b~YW06;%=HX|50S<71`#+xZ~}@rck$`z0LbZN?5)#2"
    "n6?YIJ0hVLAYlvPfjUcij3h`>Keo7@_#CO*%2!JuM+QB-OmQ7!r^24jGfwnH;=DQ1iCNdjCBm`o=|`qf;&8+pv(BN9HqpMG;G!}i)+`JEs-WNLuzEpJcGMPU@?eZj75J!1%87@_RBDLOr?zgX@aj-R"
    ")b_8Z<U~<aUhK5vYkE`r+}`g&AufDBtW2G?HeW>rdu9Y(83mI~Z<f9N2};Aoz^GZRpibz2>4An@!mtJ^FO1HvWGCHLm_t%E>cXCBk~et>9vfI~Z?*B}7ls}Ym=8kaw(E?vDpL>t*%B2JWGr<(w6i2q"
    "3Z%W)ZI#}`RU{r7E4nL77F}m#K>kWW&@><b$s7Kq93mqO``ST9@i8h(SguwStpU~!*{q+u#-3lhbZc%~gMse)0NpZ2p>{QNoX!_Rbw;!MafYP&6jkgKGpz;)eZqMB&xpa)ObS3B$%5|D)jOVZ4UnVM"
    "qIe95QUfkGUqY${hJkKcS-|$pE8}D=69Pny-dtSwx=;imo>3No0=(<@s(wJ;d1)rxGbc6PbVbitgk7Yn7NB=0J0%i7eGPP1?Cl8ak0AF>?+yWsRw9^RosfHau_>uBZB1$_0)rLf&mjj`{Yk(J#V+}X"
    "=}>ztg~h+t1H~eR&ah1an?8n&WPycMPyeH_N1ZC?hb);T_a3vYCl(%J8|!$=B}#?`ZC*JwMYQ24Xg-$it*A@s?JXq_@+G1Fra|dQR%P4_=Tffx+l%fq$~vT77C>2P2|x1^D;_c2S{x<6=aDC=oriJs"
    "p)5UXDc^<pwel?8Q7e5H?HTjx@;1+$F=&)VZ7h$Dp5Rl%>K17J)X4tAhB?#nfaUf-;v}ufH`P`si7{1nn@Z&51iA5^qt+|=LyYO<%`fzQ#yzc2p|pxLX%-`gn@!)WKev&B3^*Sw0TX%LEGeEER}o=!"
    "76v#o{n#ehX5m{N>+@SB#RM<5#GSO(=-caq<8x?xo#Zjp{Me6r3-zFS%!zL9WmcEqImSQs)2;<Ck0-iA#t)_x1tseMGx^72{!sW3t|wL6!ZKQ+G}`_l)hYK-#fwMu5$?t)`~9)wB#T50&$!aC*IlX`"
    "p{5Y5n50ncn5iw%Ad;$L8+g&nIE2DfrrxQxF{a`MED&Gfo#ZqhHNy+apfv?k3QD=8mKGz_u|uwv%I(#2a-t?I&6wf`o(Vc~m9jp#rfqO853sS_qNesbmfia2xHGjT=rr||KGzSoU#xN3PW<bjD835+"
    "90xAl11`GDQ(WuT-s4eJk4(+Cz%~az=e-W?Pq+t3+_l`7u~l?W-;$y(C6Eaq_Wq6u$6S7E;;`eVB1zf6#lTp3MmsEV%6tv>PiA%*pOUqIo{oIYr;MjsqS4m=N$p=KyGGGAnLP?hJ^H&`ob%Ie#p5x1"
    "wkInRH+}Mx{qP8if*2MM)4t%#L)LBi%aC5A!Tf1%nASc2jEAONR|!{v8rzSuXTfLXn_TDu(3u>Dp6GjoMe&X4zki6jm))BPTqasGd~Oy|&_nt=Nud2?W%v)Pss?Od*uboe115#ZumGtvMQE-~ah9q0"
    "M}dngL}hwQ%b|0m8g(={ghuMg2`G!XBZfTG_5`HBuZ!4J<#I}Q&@qUA{)}dSu;f<s5^CRZ4~qb_40%za??q)AfEa|1sZt3KUf&FhssMd@`>|F)X%7N-?#8{-J$}AIh{58`Aq|?;gsJl3i-U`W%ApMO"
    "6*ApXJ9)=S1Krnl)wt9%KV2CzZDPJMBio<gs(A`NC&zqZaqI_6I*p9V_#b3m0S+{#_ZYfV=1{}{KuTH>wc^MgsoAQbC@)Q``?Z84Ky)8M;!y4m9jeg;ny%`o*Oz2uqu;nz+!l)Lmuu09zgBS}Z36g*"
    "OzGnOiJc}URK^JE73=P_u){OK;7})PcIUU|o*#Pa^LVJ6p0dH%c2rP<2KkazGF8s@ZXDQd2IjHu+$CWx>gLcfozOJe&xN#2JmlBRX5bS}Z_qOW5_6D1IZ8G>td^^f0Y!_~m7|=>^GZq2v`OS4NMoq^"
    "&>fe7*x5&u@di2+E?H~AQK52@CwCv29a$qVJQ5v8`?@CBbZpwy3aZW3k%uu;LOt$|agWFzWAuN(nUq!#7v9r=wx|jlUo&+I-Br^qh=U&0vI|=Q|Lt6;x@AA0<>J`RWxBb@cc7a`fskw>R(2cTuY3{>"
    "i9?EpKkx~n(;)Gt%t)yd14%dG5-b&qo-mgDd_!ZuqXWD1pk!I=%HH_CFX#V&d|?w}kM=y6@yQ_Xoh@K5a~3dS(s2q|*67yi)_n-}^j<3Mu*SAE+v>hvocdrixbP{<JOo3KGyp^7>LCVP7n1@ZYGbv)"
    "m<M&VfY<%?2c*YUvB^C<99CRpH^~7%cl6C}kJVI*L@#fP{0MK-gX@7S1TN=n99J(xfAvrP5Fb!cxn8jJ8<37I*#!?ukilbRSDQlzlOl!(4-MTitury^UJBEb3#NJfUu?{}BGYLh*y-Gu_EaekqpFF-"
    "14zhVj-J0NCxA2?8ZiR(!<SKDqq30wCfKhcP;YQ>oaUCJOM837DnTh7jB4GNtEWq@dP>i$FiY5OGBY4kA=VC*wIFOAs!@NI*49EWcPvyBvkEm?!QGXP$h)H)(V?r>HFd8Ikxc1K{6rG4FcuNIReW^|"
    "m;I!;CkWjT$JR%9PI<;7E}T}{$)4_`4RXyE|IPQfT5&|8$ZRCjhpBhI_oY~zNAi?g?_*cjCZ@)aR+~<A(0Grajb4ZAthcsG^e10Z8b(Ly;6)$~Q>zfO3_Np-t0<&{xf~~>grOHS_+`BhGU7EzG*OJi"
    "XKR?<iU{wgx5^5)d00-$xh|d0SF4$mi(e@Ig3BSO3L!`EDwNjP5yyYa&${?R3FH~GWoOfE^eb=eTnb}Ddf}!2EOXmp78o6Pee2KRMH19ByLc@E$+}9%v2dUBfBid`neMiLK}tfP@wj%ts7RHD{&8$2"
    "_uXMWHwq|-_=RgU%EqEe;F3}c{JA+g?(OgBq2@v9tk1X9myiOKQi6b+N<e*d>g~uNppTFsCt1(fMgfWTDkk1q2+{aa38E>urTt3Hk+h<WmCIW!bkEd;04Pc#&iM-RobhWGG43K=yQgL^WZ3Y=EG5Li"
    "hh2cAUByL36MY0>bJiD}6)Q5K?;ukC<5Z3-IQxp8CxL11$STej7hY*?Tb5W9ApZ{IzX9ywFFhdkx&@<P?oLnrgP#UDCYulck@U4zNb>y~m=_U#BRd|Ujw5^iNZm(R+9jKaFcN1OEYIo66D-3S#^(4{"
    "1r4FCHyM?{e--NTYeDA8L?-&Cbj*CX?W0KHeJ>Hp%a9X^z;fmdF^;5l_}g<WdV;Y&|3%)hOWGS^(qtHHG417JQ!o_#5X8?QUvKsbNG-8BwN2F|$A?E)2jMzFMjg+#n70BmM&4>@8&1{lnsVr6Zd?D0"
    "Ji)%W9?(1`Ajoj^g2x1(-1h##Mno@wuI3}@B1LCue?#Psu77B;Q6_&Js~cZDINOy>9iU(^EvMtoqmllN)Z9R!TyWWXa>k#M-60%37(;l#o2@zV3wb8HPnd{gv|P*D5%)ur9XW(emYu1mwf8d^WvgSr"
    "FUS*%?z&#22Xd%7icD?mbRLZib$5lLIuGp^>CU%ld-=A6QqB(V^COPRE^Hp@$>XU2t6;z@Saq#1yyiC452l>HQ=Qdp#W^(*>1GpNBL6Hs*jGixx}swtW_)2-=JT*ou8+b$d686x3-exj#?55~4sFmB"
    "u#Vv-#v-+v%G_U|0>#J-wj}fGn3`+HCF2VQHpc7Ly$}R<4wzD>>6eFyr%g>8kFQ68-Sqpq18wDwVJ*fDVFI6Q|B3Jn2#H<?u{dzN9rm2<3%hi+)(@=wI7ss5n{ceOIsmBnT8_p0_Y8_1<k0nn({Rwb"
    "MB)o?)nPW-;ob4qwE)kvBqrMOtWwx0dlo*yxcl7+)JVuu7(^Ei_YacwUusp@)YZCVVT>ZovBj~QTJSc}aIbLNWl4^Ic$68Hfr9az1<X$7-m2el=K89PlJ4VJj^_d1TDLV&eQ9Ca-ukN)<MNNMi&9+("
    "rK|BadHPwh=e#_4`qzx}q#23ljCErUL$85Z#k%=)cC`(au4`!N)}QgHWg|=~w5&*!?(VcWgJxZC`+Jx54$y2Kmh==_7Z<iWD7y@6jPeRsI|5lWk7E$b<a`xemub~hY!v<+A*GuUl?8K9dc4wD>11}~"
    "A>G1>tL~+U+Nq+sSrXMZRY-)2%p<iseRt^~>0P8xT~$0&YB#Vp|Nka2Os~;A{~0-MyGN+lUgNpC{^KY8&P)B{D<j9hYh#}-2jJ)?)(2VgUwhn0T>9-2fQ)cz$q91;aPl)R$h~mOA)KK>?b6*%mWcHC"
    "76pfjQT8zizH`<Aw`|rgi|&38KF4sJTu6F1ute5gIeWz%CSObV5@t$q)oS2d?22|6SbXw!u=uYVN+45be?3;mmi=4}4W7sVXS&r2lBX%$UKNywCigP9Lu-;jR?+c~4AvY1m=i1%Jj<l!Ysy1F2*r|r"
    ")H=8R^q_M^*7Sk;O`J%$zKLa=iUuAl%jIk?$_k|%MG$Tj5|i{gGDW+vW)?LYk~_VLDTl=Mw%-h{?N1RpG?IA4wsyXBz{2w68H4nd%IUTVo-(R?vsQ!n9@{hl?&#`-H+jC^{RSuxE4n?tsZ7gK6`4Y4"
    "i|d-mOUffS*Nvdav89~W)>9{q2`?fv*3o7G19Sgh999Oplz(9bie${595kj`Zh*_$<H$N$eZvf-;N@I?)<aR|pS>h*bucaSqSv0cE?u?mg0Qky#e&Xb!TEzomtaya>6jqT#f<$mz(gn3c+vn&#Qee1"
    "V`w*TM3W|0%-Zr-oJZ`%I!s<36nW7WuPvV|M1Exr)WwM33ytE`a3+r(3J^V(?+J@W2Aj0cKOT3X$y{HBX$(v!gmfQ|FUtJoB*6L{3wv!M44(e#SS+rm4*=&4=CyK>gpG_^(3urW|4IX*UZ4gmNn%>Q"
    "-s!xwu6gR&VdfynF)kou7=RO^?qVCE^drM6aFFj06BaX8iQ7~F=7mUJKVyLHBUpjq;*hV?`0UDX+7p_YfZ$;<Ax<sH8`@EOtn@ghlMs=&#nP96`i@+{d6OKaWnDWf%1o4@t(+q`)*P~JIp2o5-!!RK"
    "B2`ZV4@G5@h9wAO`lnK3P6_4>PlGdc5GH#4L}W+HDe*0@z~VW#|6#G^+XH-J*6m>KtQaRG)8SjF;Si)*O|C}zTgH$@jzn3<iS&>HDQ3A*b<D25tqxD}(;PKLQqNc7!PnTe#gGl>fPkH<F~h;BuksCB"
    "XZY${?I2YP^bR`jaZOJ3H4XHA05N$_n_%8>C+bc;QFnW0pSUv^*JB=Dp8ORI_n!j~8}d7fY(&hAVE8Vv+C{J(i?n_fvts8XfZMn8n0PD!IQEp7pasn6o65Ms4*Ji1wSBnt5jq&g&L^8k!C$g=0i(z4"
    "dVWpt=K99rcz4?a6*ZXe;04PjI0MY~ailSvhRzi<W6Ot_cnahY8=pwUB3&17(Thyg@$YFJ^n{8V+s{x`5Mn7movlG#i?3f{nm*DDYOSP%8g$x{nsNRCu0@w^>o(WAm2R6@D+Zf`Anv#orIB0q0jb+l"
    "n)AIt_Qpk_xGc?S<y3)>#ee~_(|)218k|#k_NI6Bd89=SIv5fm2nfj%;CMF*=3|pKHQ5bdfK^69u>8xD%*7kO+`Fb2;%MxMcQ?4+-cy+&iQ)Ds^{A4#X<h@{NPs7q7+8$)Q(ZL@#{+yMgSI7wnfA=G"
    "hI{O5f?`Ii;gu*J(H1H7L<G<#bM5!^Zx{+X4hKp($bN3L+3Fv>XY?NYH_p)bNDM6ZOxR58JxNI2fO)ErOdrAyUu(TzXLg!pdqKq60sBnXo{3W366|XxiApi1S7=-eQXOm=?@E$Zm%hyozgUO_D$F9J"
    "b0C&6v;nfo>;=bRCu{@e;Xfx2V#h!$DU(9BtL1g^ydQPXDb$H#!+Q;JNn19`3I=*)Li~to|1{~uJn@B0nO&o><40(rxX*s@>$Q^-3o80@QJfoe!Uv1tr?do7QBfR_e}q6T=bw2}kL1ILUg16lfL1#|"
    "9LX{p;$v-<Ds~wmx5{gjq7{+?A#-HaGE~>kD5xTU<#v|dYXxb>-;<-w=$-RVS}uT`L)u(a6@~r8hN6+X7UtmOYG}JG5Mz)Vwe`iQQrXCjmjuQLbjfwLa?`$kPSqKSAw;m>72(MeD;xoK85u%QLtq}}"
    "aK>l}-C9lShvAP5wL&mVEF5arjZUE)P|u4qKpc5<oM>?bCLzXMSIeF8wNJjsD*>v7#@xnKf0S%=NgLvkDIKtIA>cJ-SNa2{e<sB!ZkL*R6$+kZi1)i+gLZ+vq5-O3KsG{87*E^^0;<n~ue4c6iujcn"
    "slaRaj)^yS1=U^19{^bp-4UT9oxeAXu=r$-X~-4n<Vn*SG5l%AD$vEr3~KFO?bEC}BlAW!*pf8+em__y)b3#%=)W{;$rdsdnICaQN~{tc2mMkOx1ZhYNW2ukQ=*}u2l;0)Cx40BL#93vYg5Q&NUQ8F"
    "b%sNZSfRXPEIPUKk5>`Uq_9QfO}b%ZoQ4R<k^7-$r%s3)!5`7R*#QGBZtO;FVi&Znq;w8i(5zzRv3cmLA7q!=y^NB|*qJZI5=__<Gkbxex)y{ZW%|Y4G23E_DgX*U;Z9Sg2-KR^?WbD#Q6h#(h8gk$"
    "Y-(K+4fO8mUd+4_e+{W`c9xn~9^wnvOCi6|E)7@h`*uY&;Ak3M1U4+Kxm(9#obNpk*$~qYL7?k(m3>FG2G@W>fGn%=pTfU`EpbA*7mjf!QyuRa$-TCT0KgGM^SeyYN?AKp$sjxqlefgiBRdL=UJrB%"
    "iuF8k@ZSiJBks6)(}adsX6(mpY)y3Y&}O?*J$(Cxs0vnTdAJngJYcrQ#bY8YP@6Y!%OeN~i_6?Cx-*C+p`4bqt+5gyOk!~`(RQw2J*|EkFV<8cUD;f7(A|<iVIq<3J<llK#|9IX19q091pvyhs9!p}"
    ";CRcQ$ba04{*=TYn77?@-|;SKO|sRZ<8&onN);8b{P3nwh_9~T0I+Ub`phN?Gsd_n-uYS?9gOKYkK3<+T4iRPiI#Gj?B-|iOTzKd(QI{qK^V7tiz=GU+1=gZ=@~-H+_Oh5Go_J^cu200-=z??Uz1>*"
    "&XYy7_9qB{%ymkX=PYAaE*0wbKFwkus18Ej>UnFiCr0~AUCFUhBde&a&xiE=<ismL6~4)NrhnQj>oh(-)4|HIq4NWv?r?XV*}v%A57D$2K5hTb%IURvfTcS{X&3<$7FYDqfUx1MsinIrr4lh=>?tuD"
    "xQ)=P_%46Da?>hgW52xB|BKSSbMEGyOwn_ox+Fy)mdLO-13ONSRh)`yI*}g_Vv`YEykC>5jJ>k0tpBQ2bk6j(l*;KGn<Amx*;1SW*`+At7D?by_)5;qOR9;EP`<Pd;<(4KrJk}QNo8PinPE@~#6%N7"
    "@{06WIhFH_9_b&Mf~v=_RM9vrh8$M|Zz9WD1JFU-MBDutn~7K>{2!$@Wf11=)ABXsSP|96dt^a_vHnp9N;ER5p)x7o2I{3rOQsbLgc{gprbjd~8u9@2r%OzgYGU9"
)
