/* The yardstick: a hand-tiled C training step (forward, backward, Adam) of W1, W2, W3; see run.c. */
#include <math.h>
#include <string.h>
#include <stdlib.h>
#include "data.h"
#ifndef BIG
#define BIG
#endif
static float X[NSAMP*DIM] BIG; static uint8_t L[NSAMP] BIG;
#define AI static inline __attribute__((always_inline))
#ifdef __AVX2__
typedef float v8 __attribute__((vector_size(32),aligned(4)));
AI v8 ld(const float*p){ return *(const v8*)p; }
AI void st(float*p,v8 x){ *(v8*)p=x; }
AI v8 sp(float x){ return (v8){x,x,x,x,x,x,x,x}; }
AI float hs(v8 x){ return ((x[0]+x[4])+(x[1]+x[5]))+((x[2]+x[6])+(x[3]+x[7])); }
/* C[M][N] (+)= sum_k A[i*ais+k*aks] * B[k*ldb+j] */
AI void t_nn(int MR,int NV,int K,const float*A,int ais,int aks,const float*B,int ldb,float*C,int ldc,int acc){
  v8 c[6][2];
  for(int r=0;r<MR;r++)for(int v=0;v<NV;v++) c[r][v]=acc?ld(C+r*ldc+8*v):sp(0);
  for(int k=0;k<K;k++){ v8 b[2]; for(int v=0;v<NV;v++) b[v]=ld(B+k*ldb+8*v);
    for(int r=0;r<MR;r++){ v8 a=sp(A[r*ais+k*aks]); for(int v=0;v<NV;v++) c[r][v]+=a*b[v]; } }
  for(int r=0;r<MR;r++)for(int v=0;v<NV;v++) st(C+r*ldc+8*v,c[r][v]);
}
AI void rows_nn(int NV,int M,int K,const float*A,int ais,int aks,const float*B,int ldb,float*C,int ldc,int acc){
  int i=0; for(;i+6<=M;i+=6) t_nn(6,NV,K,A+i*ais,ais,aks,B,ldb,C+i*ldc,ldc,acc);
  if(M-i>=4){ t_nn(4,NV,K,A+i*ais,ais,aks,B,ldb,C+i*ldc,ldc,acc); i+=4; }
  if(M-i>=2){ t_nn(2,NV,K,A+i*ais,ais,aks,B,ldb,C+i*ldc,ldc,acc); i+=2; }
  if(M-i>=1) t_nn(1,NV,K,A+i*ais,ais,aks,B,ldb,C+i*ldc,ldc,acc);
}
AI void mm_nn(int M,int N,int K,const float*A,int ais,int aks,const float*B,int ldb,float*C,int ldc,int acc){
  int j=0; for(;j+16<=N;j+=16) rows_nn(2,M,K,A,ais,aks,B+j,ldb,C+j,ldc,acc);
  if(N-j>=8){ rows_nn(1,M,K,A,ais,aks,B+j,ldb,C+j,ldc,acc); j+=8; }
  for(;j<N;j++) for(int i=0;i<M;i++){ float s=acc?C[i*ldc+j]:0; for(int k=0;k<K;k++) s+=A[i*ais+k*aks]*B[k*ldb+j]; C[i*ldc+j]=s; }
}
AI void t_nt(int MR,int NR,int K,const float*A,int lda,const float*B,int ldb,float*C,int ldc,int acc){
  v8 c[4][3]; float s[4][3]; for(int r=0;r<MR;r++)for(int q=0;q<NR;q++){c[r][q]=sp(0);s[r][q]=0;}
  int k=0; for(;k+8<=K;k+=8){ v8 b[3]; for(int q=0;q<NR;q++) b[q]=ld(B+q*ldb+k); for(int r=0;r<MR;r++){ v8 a=ld(A+r*lda+k); for(int q=0;q<NR;q++) c[r][q]+=a*b[q]; } }
  for(;k<K;k++) for(int r=0;r<MR;r++)for(int q=0;q<NR;q++) s[r][q]+=A[r*lda+k]*B[q*ldb+k];
  for(int r=0;r<MR;r++)for(int q=0;q<NR;q++){ float t=hs(c[r][q])+s[r][q]; C[r*ldc+q]=acc?C[r*ldc+q]+t:t; }
}
/* C[M][N] (+)= sum_k A[i*lda+k]*B[j*ldb+k] */
AI void mm_nt(int M,int N,int K,const float*A,int lda,const float*B,int ldb,float*C,int ldc,int acc){
  for(int j=0;j<N;j+=3){ int nr=N-j<3?N-j:3; int i=0;
    for(;i<M;){ int mr=M-i>=4?4:1; 
      if(mr==4){ if(nr==3) t_nt(4,3,K,A+i*lda,lda,B+j*ldb,ldb,C+i*ldc+j,ldc,acc); else if(nr==2) t_nt(4,2,K,A+i*lda,lda,B+j*ldb,ldb,C+i*ldc+j,ldc,acc); else t_nt(4,1,K,A+i*lda,lda,B+j*ldb,ldb,C+i*ldc+j,ldc,acc); }
      else { for(int q=0;q<nr;q++) t_nt(1,1,K,A+i*lda,lda,B+(j+q)*ldb,ldb,C+i*ldc+j+q,ldc,acc); }
      i+=mr; } }
}
#else
AI void tl(int MR,int NR,int K,const float*A,int ais,int aks,const float*B,int bks,int bjs,float*C,int ldc,int acc){
  float c[4][4];
  for(int r=0;r<MR;r++)for(int q=0;q<NR;q++) c[r][q]=acc?C[r*ldc+q]:0;
  for(int k=0;k<K;k++){ float b[4]; for(int q=0;q<NR;q++) b[q]=B[q*bjs]; for(int r=0;r<MR;r++){ float a=A[r*ais]; for(int q=0;q<NR;q++) c[r][q]+=a*b[q]; } A+=aks; B+=bks; }
  for(int r=0;r<MR;r++)for(int q=0;q<NR;q++) C[r*ldc+q]=c[r][q];
}
AI void mm_(int M,int N,int K,const float*A,int ais,int aks,const float*B,int bks,int bjs,float*C,int ldc,int acc){
  for(int j=0;j<N;j+=4){ int nr=N-j>=4?4:N-j; int i=0;
    for(;i+4<=M;i+=4){ if(nr==4) tl(4,4,K,A+i*ais,ais,aks,B+j*bjs,bks,bjs,C+i*ldc+j,ldc,acc); else if(nr==2) tl(4,2,K,A+i*ais,ais,aks,B+j*bjs,bks,bjs,C+i*ldc+j,ldc,acc); else for(int q=0;q<nr;q++) tl(4,1,K,A+i*ais,ais,aks,B+(j+q)*bjs,bks,bjs,C+i*ldc+j+q,ldc,acc); }
    for(;i<M;i++) for(int q=0;q<nr;q++) tl(1,1,K,A+i*ais,ais,aks,B+(j+q)*bjs,bks,bjs,C+i*ldc+j+q,ldc,acc); }
}
#define mm_nn(M,N,K,A,ais,aks,B,ldb,C,ldc,acc) mm_(M,N,K,A,ais,aks,B,ldb,1,C,ldc,acc)
#define mm_nt(M,N,K,A,lda,B,ldb,C,ldc,acc) mm_(M,N,K,A,lda,1,B,1,ldb,C,ldc,acc)
#endif
AI void d_fwd(int B,int I,int O,const float*x,const float*w,const float*b,float*y,int relu){
  for(int s=0;s<B;s++) memcpy(y+s*O,b,4*O);
  mm_nn(B,O,I,x,I,1,w,O,y,O,1);
  if(relu) for(int i=0;i<B*O;i++) y[i]=y[i]>0?y[i]:0;
}
/* dy -> dw (overwrite), db, dx (masked by relu of x if xm) */
AI void d_bwd(int B,int I,int O,const float*x,const float*w,const float*dy,float*dw,float*db,float*dx,int xm){
  mm_nn(I,O,B,x,1,I,dy,O,dw,O,0);
  for(int o=0;o<O;o++) db[o]=0; for(int s=0;s<B;s++) for(int o=0;o<O;o++) db[o]+=dy[s*O+o];
  if(dx){ mm_nt(B,I,O,dy,O,w,O,dx,I,0); if(xm) for(int i=0;i<B*I;i++) dx[i]=x[i]>0?dx[i]:0; }
}
AI void ce(int B,int C,float*y,const uint8_t*l,float*loss){ float t=0; for(int s=0;s<B;s++){ float*p=y+s*C,m=p[0],z=0; for(int c=1;c<C;c++) m=p[c]>m?p[c]:m; float pl=p[l[s]]-m; for(int c=0;c<C;c++){ p[c]=expf(p[c]-m); z+=p[c]; } t+=logf(z)-pl; float r=1.0f/(z*B); for(int c=0;c<C;c++) p[c]*=r; p[l[s]]-=1.0f/B; } *loss=t/B; }
#if W==1
#define NP (64*32+32+32*10+10)
#elif W==2
#define NP (784*256+256+256*128+128+128*10+10)
#else
#define NP (16*9+16+32*16*9+32+6272*64+64+64*NC+NC)
#endif
static float P[NP] BIG,G[NP] BIG,M_[NP] BIG,V_[NP] BIG; static int tt; static float bp1=1,bp2=1;
static void adam(void){ tt++; bp1*=0.9f; bp2*=0.999f; float c2=1.0f/sqrtf(1-bp2), lr=0.001f/(1-bp1);
  float*restrict p=P,*restrict g=G,*restrict m=M_,*restrict v=V_;
  for(int i=0;i<NP;i++){ float gi=g[i]; float mi=0.9f*m[i]+0.1f*gi, vi=0.999f*v[i]+0.001f*gi*gi; m[i]=mi; v[i]=vi; p[i]-=lr*mi/(__builtin_sqrtf(vi)*c2+1e-8f); } }
#if W==1
static float h1[BATCH*32] BIG,y[BATCH*10] BIG,g1[BATCH*32] BIG;
#define o1b 2048
#define o2 2080
#define o2b 2400
static float fwd(const float*x,const uint8_t*l){ float q=0; d_fwd(BATCH,64,32,x,P,P+o1b,h1,1); d_fwd(BATCH,32,10,h1,P+o2,P+o2b,y,0); if(l) ce(BATCH,10,y,l,&q); return q; }
static void bwd(const float*x){ d_bwd(BATCH,32,10,h1,P+o2,y,G+o2,G+o2b,g1,1); d_bwd(BATCH,64,32,x,P,g1,G,G+o1b,0,0); }
static const int FI[][3]={{0,2048,64},{o2,320,32}};
#elif W==2
static float h1[BATCH*256] BIG,h2[BATCH*128] BIG,y[BATCH*10] BIG,g1[BATCH*256] BIG,g2[BATCH*128] BIG;
enum{o1b=784*256,o2=o1b+256,o2b=o2+256*128,o3=o2b+128,o3b=o3+1280};
static float fwd(const float*x,const uint8_t*l){ float q=0; d_fwd(BATCH,784,256,x,P,P+o1b,h1,1); d_fwd(BATCH,256,128,h1,P+o2,P+o2b,h2,1); d_fwd(BATCH,128,10,h2,P+o3,P+o3b,y,0); if(l) ce(BATCH,10,y,l,&q); return q; }
static void bwd(const float*x){ d_bwd(BATCH,128,10,h2,P+o3,y,G+o3,G+o3b,g2,1); d_bwd(BATCH,256,128,h1,P+o2,g2,G+o2,G+o2b,g1,1); d_bwd(BATCH,784,256,x,P,g1,G,G+o1b,0,0); }
static const int FI[][3]={{0,784*256,784},{o2,256*128,256},{o3,1280,128}};
#else
enum{c1w=0,c1b=144,c2w=160,c2b=c2w+4608,d1w=c2b+32,d1b=d1w+6272*64,d2w=d1b+64,d2b=d2w+64*NC};
static float a1[BATCH*16*784] BIG,a2[BATCH*6272] BIG,h[BATCH*64] BIG,y[BATCH*NC] BIG,gh[BATCH*64] BIG,ga2[BATCH*6272] BIG,col1[9*784] BIG,col2[144*196] BIG,ga1[16*784] BIG;
AI void im2col(int C,int H,int S,const float*x,float*col){ int O=(H+2-3)/S+1; for(int c=0;c<C;c++)for(int kh=0;kh<3;kh++)for(int kw=0;kw<3;kw++){ float*q=col+((c*3+kh)*3+kw)*O*O; for(int oh=0;oh<O;oh++){ int ih=oh*S+kh-1; if(ih<0||ih>=H){ for(int ow=0;ow<O;ow++) q[oh*O+ow]=0; continue; } const float*r=x+(c*H+ih)*H; for(int ow=0;ow<O;ow++){ int iw=ow*S+kw-1; q[oh*O+ow]=(iw<0||iw>=H)?0:r[iw]; } } } }
AI void col2im(int C,int H,int S,const float*col,float*x){ int O=(H+2-3)/S+1; memset(x,0,4*C*H*H); for(int c=0;c<C;c++)for(int kh=0;kh<3;kh++)for(int kw=0;kw<3;kw++){ const float*q=col+((c*3+kh)*3+kw)*O*O; for(int oh=0;oh<O;oh++){ int ih=oh*S+kh-1; if(ih<0||ih>=H) continue; float*r=x+(c*H+ih)*H; for(int ow=0;ow<O;ow++){ int iw=ow*S+kw-1; if(iw>=0&&iw<H) r[iw]+=q[oh*O+ow]; } } } }
static float fwd(const float*x,const uint8_t*l){ float q=0;
  for(int s=0;s<BATCH;s++){ float*A1=a1+s*16*784,*A2=a2+s*6272;
    im2col(1,28,1,x+s*784,col1); for(int c=0;c<16;c++) for(int p=0;p<784;p++) A1[c*784+p]=P[c1b+c]; mm_nn(16,784,9,P+c1w,9,1,col1,784,A1,784,1); for(int i=0;i<16*784;i++) A1[i]=A1[i]>0?A1[i]:0;
    im2col(16,28,2,A1,col2); for(int c=0;c<32;c++) for(int p=0;p<196;p++) A2[c*196+p]=P[c2b+c]; mm_nn(32,196,144,P+c2w,144,1,col2,196,A2,196,1); for(int i=0;i<6272;i++) A2[i]=A2[i]>0?A2[i]:0; }
  d_fwd(BATCH,6272,64,a2,P+d1w,P+d1b,h,1); d_fwd(BATCH,64,NC,h,P+d2w,P+d2b,y,0); if(l) ce(BATCH,NC,y,l,&q); return q; }
static void bwd(const float*x){
  d_bwd(BATCH,64,NC,h,P+d2w,y,G+d2w,G+d2b,gh,1); d_bwd(BATCH,6272,64,a2,P+d1w,gh,G+d1w,G+d1b,ga2,1);
  memset(G,0,4*d1w);
  for(int s=0;s<BATCH;s++){ float*A1=a1+s*16*784,*g=ga2+s*6272;
    im2col(16,28,2,A1,col2); mm_nt(32,144,196,g,196,col2,196,G+c2w,144,1); for(int c=0;c<32;c++){ float t=0; for(int p=0;p<196;p++) t+=g[c*196+p]; G[c2b+c]+=t; }
    mm_nn(144,196,32,P+c2w,1,144,g,196,col2,196,0); col2im(16,28,2,col2,ga1); for(int i=0;i<16*784;i++) ga1[i]=A1[i]>0?ga1[i]:0;
    im2col(1,28,1,x+s*784,col1); mm_nt(16,9,784,ga1,784,col1,784,G+c1w,9,1); for(int c=0;c<16;c++){ float t=0; for(int p=0;p<784;p++) t+=ga1[c*784+p]; G[c1b+c]+=t; } } }
static const int FI[][3]={{c1w,144,9},{c2w,4608,144},{d1w,6272*64,6272},{d2w,64*NC,64}};
#endif
void b_init(void){ lcg_s=12345u; tt=0; bp1=bp2=1; make_data(X,L,NSAMP,DIM,NC); memset(P,0,sizeof P); memset(M_,0,sizeof M_); memset(V_,0,sizeof V_); for(unsigned i=0;i<sizeof FI/sizeof*FI;i++){ float s=sqrtf(6.0f/FI[i][2]); for(int k=0;k<FI[i][1];k++) P[FI[i][0]+k]=(2*frand()-1)*s; } }
static int bi;
__attribute__((noinline)) void b_step(void){ int o=(bi++%NB)*BATCH; fwd(X+o*DIM,L+o); bwd(X+o*DIM); adam(); }
__attribute__((noinline)) void b_infer(void){ int o=(bi++%NB)*BATCH; fwd(X+o*DIM,0); }
float b_loss(void){ float t=0; for(int b=0;b<NB;b++) t+=fwd(X+b*BATCH*DIM,L+b*BATCH); return t/NB; }
