using System.Security.Cryptography;

namespace KernelTls.Tests;

// RSA keys (PKCS #1), generated in advance: generating one takes seconds, on an emulated machine a minute. They protect
// nothing.
internal static partial class Certificates
{
    private const string Rsa2048 = """
        MIIEpQIBAAKCAQEAzzfpATblKaxdW6LuomHmfI5eUIoz2jJm2/VkBe/GY+QFVNtGRYzGZKHY//kFiC8UeHdgbHdrw9BKiJixEkLzXsrQU2mbk9NSgi/qxGtL
        0BiwvEHeZC8C4JqF6zRocdlBzdmvahm11CcK7BUx6uBQgnmdPo9H0fFY41R2uESYioeCEppdC7YKQvm+kFtWWW5TkC4/esxyMeXpVaDfWDRgy9Px/zBzbvn9
        njW1kSH+7TfreIVAsRgWh4g9WK08J2XlPXXUYzI4j0t9aGSdqOg6ZOJ7sbziSMQCtO8ZGGTVyaBpFyGZkqp2rdHnk+FODRzSFU0lyYgWgAdnR3JNKO36WwID
        AQABAoIBAAGunoGYBHw2HfvkcrN2v/w626EjvhADYLpgX5N8wsuEylZKAWQHJIUkmzJYvya/2xavQWUgAwvv4OsC8k0Hphoa414J+W1VxdGwueMmS9NAoA6n
        Kjr99rQEDRo/rqld7h7RqY7e7o7uUjRgZ6tUbtLgUdp0J00Y/HO798q/I83cD/1fcEMAPch9jp9KcXgSIEyYaaIzQ5I1GVCsbwyKgLl+IwLH3xfoRF+ALGMr
        YrMnEJBrmx15zGIAmCmV7UZeW2qHa3yNDX8r1DKb49jQq4uWWcN3qZDoFXk0YorUHqTDeNDFthmI+eKI2CkD1j5jwLvGXKrBDXRNuVqgI20e3cECgYEA+y2W
        L88mWahJRqCsBtOm7MEYYWShkXu/am0RXVkOBvN9l81C1+YJHAQvtUzUuE1vnNhru2v4RpIkTPossOpNxxVTEgmxsCHenY1xQhOeGe3kppiWSWNwEhLNtMpV
        Mt9/+fRSNUM0Bqsu+OVqf5NQy23ERVZZrhLauxXmsmzGOZkCgYEA0zJIrvMtJapnwKvNvfOwIDTCByzVVWrCoqCAPii/uhZ6rnH8Gq3R8wlmS6aTmCtx069q
        lhKjuuGsCkR5ZJmpi3HWuL1VM6DB3q6jQjimWCkWNHbHyL4Jpt7UhWe6PHl4NzLq4ckrpiP4QI2+YZ1oW5LMCFV7TNOVvVk/jKfN1BMCgYEAgrz3r2rjS0eM
        3HZFFEiWWiUny4nVjyQaPgsHPs9bvcJ/XMQ6RqY1l5+WNYgIMOYdckYzzRol4JWwz2BoYq2STk2LL5hcJJF8jgVRLlOHt3dbzFsf3pMjgkTHTZMDRbePpUrG
        f3K7Yb04ddTz2fOT2k8IGg8YHsMxlq+PpM95XgECgYEAsNjkYAsk/OtKYd37NFpAW1eSOavjH9l8De3UNTiuA0cbh8PO1RBEQ/zU+fgMk1mdwSKcX/pPvAeI
        pjhcZk7919SFdsCj/c1ZSfx2nNcPA7ez7k6gUIpBTsg8sVEAc+9LKP2sDVEFCeQI1xVaHCdQ4Y106G2cB+MM+jcnrcI96p0CgYEA0oetCfpJbwIHZbiPNRBV
        C4+zat7VpEGIKkVRowfWXdj/M2OyXkxPlOIFi8zQrwt0BOGIzoi0y/ZTeP5TCF3BRSWNnp1KaZ8rTTCSzjHmxZxEuMiFHIQNNGAHgKgEY76Rc14oGQHq0IKO
        eVJIUwEn+iO8rbpbuZwbW8ElRApgbV8=
        """;

    private const string Rsa3072 = """
        MIIG4wIBAAKCAYEA1YmTFNyeDsobig534NUVAl2PMo3Oc8BlFPqTq2PotlpVsfFlu7aV2oLPsMWPAjJkRDzb1nsgSc5kZY7TZvpTnF8xAdPW25iwxs3wgrEF
        4rVeRg+LFx/K7kf0DZJ4OhlDa72zTrtmrFyb0d4dlS0miIQ0tF6KKahe9WCkAwtuWn5Sv81TvT7y0ZNGhglsva9bZ+MQl794XK7WsH5+YWdJNm+S3dvKwaqK
        ZJVnK2/WrHvQJFz4tstA49i34kxoZr/Ow/mFxOHETc7jaZdry1ijCJssCJc7ShKmz58RcikAFvWT0xfdWfeeI07t9ulFxMNoW4LoqmZd1rjfpt2QPmy+FdYr
        USnAQcOwhOYm4MNo2ImKNPfcqTmMs5ooHbydSOBFYbDBYcKqyq9UuOUjC4P4Ys0h85+IISpMC9f9yaKTAW38yW78J3FuKHQ03srV7y8r4JVRqSj01QfkaLGc
        mjwj3A/tlwiGsQa65L7HaSPE2F8PVuiw/oDfqevw9DK8Jy5PAgMBAAECggGAJPDPVoESANn66Ke3GliScV3RG3xHtmOWuQneSPyYMg+vmoB5yn78LpiJqHmM
        02L3UIy8tT6Ip+wCF0WdkceFdlxLZJcKqOOh1UqkLF/GdmFM5U7kD4SK/SzKbhykGtzq+nUPU3P8/51nwWcs8/UjIOPKIFfoi+taPhXRWct89D+9Pfwd2/PL
        WvEg9qgjvS7cX7z6zl2ry1DdyBuh7mTJWBb2L9ZJnbZMibkE55FJ8H3c1KWWyzyfRatkqEvyla/hmpE2sHvZ+N3qcWQhPBniVJ+rhnIx5+oqnYZm5ZTp25eY
        S1P8Ta5bzUDpw8TI3rPZTTFo8dFYvvLSnuc6SQIl/9OPsoLBhPBJ8RdESWIRG90/F+OACGZozoR34YfU7cwhzsA7EWLyRXiOI8xS5B01vUm5YaYemVlEunq4
        3tUFTJrmOgvL6GS2OsdPcePAOsaI0uYRmTOJb4XHysDwRO4OUoKGfSdv8u3fiClVJU8HAHL32cbyx6Bkef0vTLN7k0ppAoHBAPr8/rmqC2BoH4f55W5xHTig
        ZBa3Jwm6SX1LX0w/9oRgfezFTdmSlbxhBJmWyJoqE4IjXin7tVZsYiKpszFjI751883IxS7Q6gwx7NIx6PvT1qMABJVT1Qj7UDZrZgE94lzkUfYfL7N2Svyq
        192S52z+dtlEOEsxmDBK7pudAzC0XfW170cW0zO+ZNGdk2VXl/sXdL2qkLEwcMYDQzD0Njai+R4xRYCPpt7D8iTRi3oPGpzUL9LH9ERHUGjhBHUBaQKBwQDZ
        zSNCNc3XvQ8FOOUAYWNd1olw4elTDQ9NuGGvUyRRghCEIJl3gXvidZUr0InM15WP8ECxqCodVzbWDAc5k/MxpLZpKiInziRckJCF/FNHlXg0WYEIyhBLXF7O
        s0gQqX9B8bUfQBd4TEBE5MGxD6Gp6r4hIXH3UzZl3ZJJ94ObqGJqaNYMSrHom0DvciYKvrcIR0mOoXRoUljgoptwHYdecA9K/nN6VABMi5BCaMZBpdT8OKR5
        Cx6Tv2aBTHNAAvcCgcEAmnXQHVq0naP2o6v6sjkSjqLGdeRJNgda6qzT/QzwHQ90752NB3TaiY/7ULomwhla4B/790Jcms8gpcxh5uboPHJClEYWc3VGVDL1
        V3Y3t6Lq2G1OZMeut1RSTOtTXzhCcoBgoGMY7AzEoTJSnp2lpsIDSjpdmoju6+lxZnr+V57opCpPEyTM3W8yhH3BFAEQGwqYYZDyctkozfN8CkiAhKdPQHF6
        IGBHhZh5EIeUmo1pB1LeC43amZp5tdGk+IzhAoHAOS9CHaUwyX8LDYz1m1b2lvG4HlpCP5sDNJ2/kB/dPkVO/tHsWVM26quCogFb3NuRmjwzUDHd9NwsOqDn
        2Lc+t/8OIah9VUQrid4vA+7PEtFswRnq5hrfklnLTqwFtNI75l2G95CFWQF0MmJ5dHqtMIbAqsQ0PwKrGq3FNgR1mo3oYRXrdUi7U15H+1ZWJKYUOmk1J+y+
        OpG8YiZvd01ZeHMloMQUH78kYPSXyMfnnd7jf+GDVYCU46fySup+rATbAoHAMNqHr7+JKk7PLI6YovwYi5eEUAu2tqR1C4BcNE3Wd7IL2kdkotDgAWWh/uap
        JuhiybIVzjhrMnZajgYpCQp64LHlomz1/yd0s3y1WPw1f2nbvvN+VmR07/psAhEFqRN4EZljcijPDfGWeU74vxJL/9acO+7sgMmcy3h3L+th79ChgxjVajTH
        CLM3zQDdDmmo/l3Cyc/K7DXgJEOoGPqG9WnAbt/XHGKltcldYZvOfleHWYfTCpJKwoSgFXTWtLhK
        """;

    private static RSA RsaKey(string base64)
    {
        RSA key = RSA.Create();
        key.ImportRSAPrivateKey(Convert.FromBase64String(base64), out _);
        return key;
    }
}
