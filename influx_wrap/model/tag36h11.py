"""The tag family of Kalibr's AprilGrids: 587 tags of 6 x 6 cells, tag36h11.

A code word has 36 bits, one per cell, row by row from the top left of the tag as it
stands on the sheet, the first cell in the highest bit; 1 is white. Two codes differ
in at least 11 cells in every orientation, hence the name. Around the code Kalibr
prints a black border of two cells, so a tag is 10 cells wide; other programs print one.

On the sheet the tags stand upside down with respect to OpenCV's pictures of them:
what OpenCV calls a tag's first corner (top left) is the bottom right one here.
"""

from __future__ import annotations

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import BoolArray

CODE_CELLS = 6
BORDER_CELLS = 2

_WORDS = """
    d5d628584 d97f18b49 dd280910e e479e9c98 ebcbca822 f31dab3ac 056a5d085 10652e1d4 22b1dfead
    265ad0472 34fe91b86 3ff962cd5 43a25329a 474b4385f 4e9d243e9 5246149ae 5997f5538 683bb6c4c
    6be4a7211 7e3158eea 81da494af 858339a74 8cd51a5fe 9f21cc2d7 a2cabc89c adc58d9eb b16e7dfb0
    b8c05eb3a d25ef139d d607e1962 e4aba3076 2dde6a3da 43d40c678 5620be351 64c47fa65 686d7002a
    6c16605ef 6fbf50bb4 8d06d39dc 9f53856b5 adf746dc9 bc9b084dd d290aa77b d9e28b305 e4dd5c454
    fad2fe6f2 181a8151a 26be42c2e 2e10237b8 405cd5491 7742eab1c 85e6ac230 8d388cdba 9f853ea93
    c41ea2445 cf1973594 14a34a333 31eacd15b 6c79d2dab 73cbb3935 89c155bd3 8d6a46198 91133675d
    a708d89fb ae5ab9585 b9558a6d4 b98743ab2 d6cec68da 1506bcaef 4becd217a 4f95c273f 658b649dd
    a76c4b1b7 ecf621f56 1c8a56a57 3628e92ba 53706c0e2 5e6b3d231 7809cfa94 e97eead6f 5af40604a
    7492988ad ed5994712 5eceaf9ed 7c1632815 c1a0095b4 e9e25d52b 3a6705419 a8333012f 4ce5704d0
    508e60a95 877476120 a864e950d ea45cfce7 19da047e8 24d4d5937 6e079cc9b 99f2e11d7 33aa50429
    499ff26c7 50f1d3251 66e7754ef 96ad633ce 9a5653993 aca30566c c298a790a 8be44b65d dc68f354b
    16f7f919b 4dde0e826 d548cbd9f e0439ceee fd8b1fd16 76521bb7b d92375742 cab16d40c 730c9dd72
    ad9ba39c2 b14493f87 52b15651f 185409cad 77ae2c68d 94f5af4b5 0a13bad55 61ea437cd a022399e2
    203b163d1 7bba8f40e 95bc9442d 41c0b5358 8e9c6cc81 0eb549670 9da3a0b51 d832a67a1 dcd4350bc
    4aa05fdd2 60c7bb44e 4b358b96c 067299b45 b9c89b5fa 6975acaea 62b8f7afa 33567c3d7 bac139950
    a5927c62a 5c916e6a4 260ecb7d5 29b7bbd9a 903205f26 ae72270a4 3d2ec51a7 82ea55324 11a6f3427
    1ca1c4576 a40c81aef bddccd730 0e617561e 969317b0f 67f781364 610912f96 b2549fdfc 06e5aaa6b
    b6c475339 c56836a4d 844e351eb 4647f83b4 0908a04f5 7f51034c9 aee537fca 5e92494ba d445808f4
    28d68b563 04d25374b 2bc065f65 96dc3ea0c 4b2ade817 07c3fd502 e768b5caf 17605cf6c 182741ee4
    62846097c 72b5ebf80 263da6e13 fa841bcb5 7e45e8c69 653c81fa0 7443b5e70 0a5234afd 74756f24e
    157ebf02a 82ef46939 80d420264 2aeed3e98 b0a1dd4f8 b5436be13 7b7b4b13b 1ce80d6d3 16c08427d
    ee54462dd 1f7644cce 9c7b5cc92 e369138f8 5d5a66e91 485d62f49 e6e819e94 b1f340eb5 09d198ce2
    d60717437 0196b856c f0a6173a5 12c0e1ec6 62b82d5cf ad154c067 ce3778832 6b0a7b864 4c7686694
    5058ff3ec d5e21ea23 9ff4a76ee 9dd981019 1bad4d30a c601896d1 973439b48 1ce7431a8 57a8021d6
    f9dba96e6 83a2e4e7c 8ea585380 af6c0e744 875b73bab da34ca901 2ab9727ef d39f21b9a 8a10b742f
    5f8952dba f8da71ab0 c25f9df96 06f8a5d94 e42e63e1a b78409d1b 792229add 5acf8c455 2fc29a9b0
    ea486237b b0c9685a0 1ad748a47 03b4712d5 f29216d30 8dad65e49 0a2cf09dd 0b5f174c6 e54f57743
    b9cf54d78 4a312a88a 27babc962 b86897111 f2ff6c116 82274bd8a 97023505e 52d46edd1 585c1f538
    bddd00e43 5590b74df 729404a1f 65320855e d3d4b6956 7ae374f14 2d7a60e06 315cd9b5e fd36b4eac
    f1df7642b 55db27726 8f15ebc19 992f8c531 62dea2a40 928275cab 69c263cb9 a774cca9e 266b2110e
    1b14acbb8 624b8a71b 1c539406b 3086d529b 0111dd66e 98cd630bf 8b9d1ffdc 72b2f61e7 9ed9d672b
    96cdd15f3 6366c2504 6ca9df73a a066d60f0 e7a4b8add 8264647ef aa195bf81 9a3db8244 014d2df6a
    0b63265b7 2f010de73 97e774986 248affc29 fb57dcd11 0b1a7e4d9 4bfa2d07d 54e5cdf96 4c15c1c86
    cd9c61166 499380b2a 540308d09 8b63fe66f c81aeb35e 86fe0bd5c ce2480c2a 1ab29ee60 8048daa15
    dbfeb2d39 567c9858c 2b6edc5bc 2078fca82 adacc22aa b92486f49 51fac5964 691ee6420 f63b3e129
    39be7e572 da2ce6c74 20cf17a5c ee55f9b6e fb8572726 b2c2de548 caa9bce92 ae9182db3 74b6e5bd1
    137b252af 51f686881 d672f6c02 654146ce4 f944bc825 e8327f809 76a73fd59 f79da4cb4 956f8099b
    7b5f2655c d06b114a6 d0697ca50 27c390797 bc61ed9b2 cc12dd19b eb7818d2c 092fcecda 89ded4ea1
    256a0ba34 b6948e627 1ef6b1054 8639294a2 eda3780a4 39ee2af1d cd257edc5 2d9d6bc22 121d3b47d
    37e23f8ad 119f31cf6 2c97f4f09 d502abfe0 10bc3ca77 53d7190ef 90c3e62a6 7e9ebf675 979ce23d1
    27f0c98e9 eafb4ae59 7ca7fe2bd 1490ca8f6 9123387ba b3bc73888 3ea87e325 4888964aa a0188a6b9
    cd383c666 40029a3fd e1c00ac5c 39e6f2b6e de664f622 e979a75e8 7c6b4c86c fd492e071 8fbb35118
    40b4a09b7 af80bd6da 70e0b2521 2f5c54d93 3f4a118d5 09c1897b9 079776eac 084b00b17 3a95ad90e
    28c544095 39d457c05 7a3791a78 bb770e22e 9a822bd6c 68a4b1fed a5fd27b3b 0c3995b79 d1519dff1
    8e7eee359 cd3ca50b1 b73b8b793 57aca1c43 ec2655277 785a2c1b3 75a07985a a4b01eb69 a18a11347
    db1f28ca3 877ec3e25 31f6341b8 1363a3a4c 075d8b9ba 7ae0792a9 a83a21651 7f08f9fb5 0d0cf73a9
    b04dcc98e f65c7b0f8 65ddaf69a 2cf9b86b3 14cb51e25 f48027b5b 0ec26ea8b 44bafd45c b12c7c0c4
    959fd9d82 c77c9725a 48a22d462 8398e8072 ec89b05ce bb682d4c9 e5a86d2ff 358f01134 8556ddcf6
    67584b6e2 11609439f 08488816e aaf1a2c46 f879898cf 8bbe5e2f7 101eee363 690f69377 f5bd93cd9
    cea4c2bf6 9550be706 2c5b38a60 e72033547 4458b0629 ee8d9ed41 d2f918d72 78dc39fd3 8212636f6
    7450a72a7 c4f0cf4c6 367bcddcd c1caf8cc6 a7f5b853d 9d536818b 535e021b0 a7eb8729e 422a67b49
    929e928a6 48e8aefcc a9897393c 5eb81d37e 1e80287b7 34770d903 2eef86728 59266ccb6 0110bba61
    1dfd284ef 447439d1b fece0e599 9309f3703 80764d1dd 353f1e6a0 2c1c12dcc c1d21b9d7 457ee453e
    d66faf540 44831e652 cfd49a848 9312d4133 3f097d3ee 8c9ebef7a a99e29e88 0e9fab22c 4e748f4fb
    ecdee4288 abce5f1d0 c42f6876c 7ed402ea0 e5c4242c3 d5b2c31ae 286863be6 160444d94 5f0f5808e
    ae3d44b2a 9f5c5d109 8ad9316d7 3422ba064 2fed11d56 bea6e3e04 04b029eec 6deed7435 3718ce17c
    55857f5e2 2edac7b62 085d6c512 d6ca88e0f 2b7e1fc69 a699d5c1b f05ad74de 4cf5fb56d 5725e07e1
    72f18a2de 1cec52609 48534243c 2523a4d69 35c1b80d1 a4d7338a7 0db1af012 e61a9475d 05df03f91
    97ae260bb 32d627fef b640f73c2 45a1ac9c6 6a2202de1 57d3e25f2 5aa9f986e 0cc859d8a e3ec6cca8
    54e95e1ae 446887b06 7516732be 3817ac8f5 3e26d938c aa81bc235 df387ca1b 0f3a3b3f2 b4bf69677
    ae21868ed 81e1d2d9d a0a9ea14c 8eee297a9 4740c0559 e8b141837 ac69e0a3d 9ed83a1e1 5edb55ecb
    07340fe81 50dfbc6bf 4f583508a cb1fb78bc 4025ced2f 39791ebec 53ee388f1 7d6c0bd23 93a995fbe
    8a41728de 2fe70e053 ab3db443a 1364edb05 47b6eeed6 12e71af01 52ff83587 3a1575dd8 3feaa3564
    eacf78ba7 0872b94f8 da8ddf9a2 9aa920d2b 1f350ed36 18a5e861f 2c35b89c3 3347ac48a 7f23e022e
    2459068fb e83be4b73
"""

CODES: tuple[int, ...] = tuple(int(word, 16) for word in _WORDS.split())
"""The code words, by tag id."""


def tag_cells(tag_id: int, border_cells: int = BORDER_CELLS) -> BoolArray:
    """Cells (n, n) of a tag with its border, 10 x 10 in Kalibr's, top row first; True is black."""
    if not 0 <= tag_id < len(CODES):
        raise InputError(f"tag36h11 has ids 0 to {len(CODES) - 1}; there is no tag {tag_id}.")
    n_bits = CODE_CELLS * CODE_CELLS
    white = [CODES[tag_id] >> bit & 1 for bit in reversed(range(n_bits))]
    code = np.array(white).reshape(CODE_CELLS, CODE_CELLS) == 0
    return np.pad(code, border_cells, constant_values=True)
